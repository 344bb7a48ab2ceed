#!lua flags=allow-oom
-- Purpose: forgets a key, or all below a prefix, in a new generation; wakes those who cache.
-- KEYS: 1 root
-- ARGV: 1 scope, 2 ms that it is told apart, 3 incarnation to give a new fleet
-- Returns: OK generation | NEWER found known | OLDER found known | DESTROYING
-- Idempotency: a repeat forgets once more, in a later generation.
local unfit = unfit_fleet()
if unfit then return unfit end
found_fleet(ARGV[3])
local clock, lives = cache.clock(), tonumber(ARGV[2])
local generation = call('HINCRBY', key.meta, 'forgotten', 1)
call('ZADD', key.forgotten, text(generation), ARGV[1])
call('HSET', key.invalidated_at, ARGV[1], text(clock))
local oldest, scopes = call('ZRANGE', key.forgotten, 0, EXPIRED_AT_ONCE - 1, 'WITHSCORES'), call('ZCARD', key.forgotten)
for at = 1, #oldest, 2 do
  local scope, its = oldest[at], tonumber(oldest[at + 1])
  if its == generation then break end
  if tonumber(call('HGET', key.invalidated_at, scope)) + lives > clock and scopes <= MAX_INVALIDATIONS then break end
  call('ZREM', key.forgotten, scope)
  call('HDEL', key.invalidated_at, scope)
  call('HSET', key.meta, 'floor', text(its))
  scopes = scopes - 1
end
cache.tell(MAX_NOTIFIED_INVALIDATIONS)
return { 'OK', text(generation) }
