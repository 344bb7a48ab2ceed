#!lua flags=allow-oom
-- Purpose: gives a baton back; one that is not held in that epoch is left alone.
-- KEYS: 1 root
-- ARGV: 1 session, 2 source, 3 epoch
-- Returns: OK | STALE
-- Idempotency: a repeat finds the baton not held.
local session = visit(ARGV[1], 'kind', 'queues', 'batons')
if not session then return { 'STALE' } end
local source = call('HMGET', key.source(ARGV[2]), 'holder', 'epoch')
if source[1] == ARGV[1] and source[2] == ARGV[3] then
  call('HDEL', key.source(ARGV[2]), 'holder')
  local batons = math.max(tonumber(session[4] or 0) - 1, 0)
  call('HSET', key.session(ARGV[1]), 'batons', text(batons))
  if batons == 0 then count_worker(session[2], session[3], 1) end
end
return { 'OK' }
