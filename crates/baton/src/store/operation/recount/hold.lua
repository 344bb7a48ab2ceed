#!lua flags=allow-oom
-- Purpose: holds the store still for a recount: calls that move messages answer HELD until the hold ends.
-- KEYS: 1 root
-- ARGV: 1 begin|extend|release, 2 who holds, 3 ms until the hold ends by itself
-- Returns: OK | HELD ms (another one holds) | LOST (the hold ended: messages may have moved)
-- Idempotency: begin and extend by the holder move the end; release of what is not held changes nothing.
local stored = call('HMGET', key.meta, 'hold_until', 'hold_by', 'hold_from')
local left, mine = tonumber(stored[1] or 0) - now, stored[2] == ARGV[2]
-- As in redis/lua/clock.lua: a hold of before the clock was set back is over.
if tonumber(stored[3] or 0) > now then left = 0 end
if ARGV[1] == 'release' then
  if mine then call('HDEL', key.meta, 'hold_from', 'hold_until', 'hold_by') end
  return { 'OK' }
end
if left > 0 and not mine then return { 'HELD', text(left) } end
if ARGV[1] == 'extend' and (left <= 0 or not mine) then return { 'LOST' } end
call('HSET', key.meta, 'hold_from', text(now), 'hold_until', text(now + tonumber(ARGV[3])), 'hold_by', ARGV[2])
return { 'OK' }
