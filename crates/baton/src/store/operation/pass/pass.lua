#!lua flags=allow-oom
-- Purpose: hands a wake-up on: the session waits for the queue no longer, and another one that does is woken.
-- KEYS: 1 root
-- ARGV: 1 session, 2 queue
-- Returns: OK | STALE
-- Idempotency: a repeat may wake a further one, who finds nothing.
local id, name = ARGV[1], ARGV[2]
if not visit(id) then return { 'STALE' } end
call('ZREM', key.waiters(name), id)
local queue = known_queue(name)
if queue then
  queue.wakes = 1
  close_queues()
end
return { 'OK' }
