#!lua flags=allow-oom
-- Purpose: a session follows a call no longer.
-- KEYS: 1 root
-- ARGV: 1 session, 2 call, 3 the number it follows under
-- Returns: OK | STALE | OTHERCALL
-- Idempotency: one that does not follow, or follows under another number, changes nothing.
if not visit(ARGV[1]) then return { 'STALE' } end
local record, other = calls.named(ARGV[2])
if other then return other end
local follower = record and call('HGET', key.followers(record.name), ARGV[1])
if not follower or string.match(follower, ',(%d+),') ~= ARGV[3] then return { 'OK' } end
call('HDEL', key.followers(record.name), ARGV[1])
call('HSET', key.call(record.name), 'followed', text(now))
if record.linger > 0 and record.open > 0 and record.marked == 0 then
  call('ZADD', key.looks, text(now + record.linger - 1), record.name)
end
return { 'OK' }
