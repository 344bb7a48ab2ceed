#!lua flags=allow-oom
-- Purpose: an order of a person: pause or resume a queue, or ask all sessions joined so far to stop.
-- KEYS: 1 root
-- ARGV: 1 pause|resume|stop, 2 queue, or how to stop (drain|now), 3 incarnation to give a new fleet,
--       4 stop up to this join number, or empty for all so far
-- Returns: OK | NEWER found known | OLDER found known | DESTROYING
-- Idempotency: a repeat changes nothing.
local unfit = unfit_fleet()
if unfit then return unfit end
if ARGV[1] ~= 'stop' then foreign.refuse_queue(ARGV[2]) end
found_fleet(ARGV[3])
if ARGV[1] == 'stop' then
  local upto = ARGV[4] ~= '' and ARGV[4] or call('HGET', key.meta, 'joins') or '0'
  call('HSET', key.meta, 'stop_upto', upto, 'stop_how', ARGV[2])
  return { 'OK' }
end
local queue = named_queue(ARGV[2])
local paused = ARGV[1] == 'pause' and 1 or 0
add(queue, 'paused', paused - queue.paused)
queue.wakes = 1
close_queues()
return { 'OK' }
