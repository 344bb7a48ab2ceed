#!lua flags=allow-oom
-- Purpose: ends a session; its claims go back without a loss, its batons are free.
-- KEYS: 1 root
-- ARGV: 1 session
-- Returns: OK | HELD ms
-- Idempotency: leaving twice is leaving.
local id = ARGV[1]
local session = visit(id, 'host', 'pid')
if not session then return { 'OK' } end
local wait = held()
if wait then return wait end
return_all(id, session[2] .. '/' .. session[3], false)
drop_session(id)
close_queues()
return { 'OK' }
