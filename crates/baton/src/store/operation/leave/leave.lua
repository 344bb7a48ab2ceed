#!lua flags=allow-oom
-- Purpose: ends a session; its claims go back without a crash, its batons are free. What is left of the claims then goes
--          back by the next calls, or by those who reap.
-- KEYS: 1 root
-- ARGV: 1 session
-- Returns: OK, 1 if something is left | HELD ms
-- Idempotency: leaving twice is leaving.
local id = ARGV[1]
local node, lost = read_unreaped(id)
local session = not node and visit(id, 'host', 'pid')
if not node and not session then return { 'OK', '' } end
local wait = held()
if wait then return wait end
if session then
  node, lost = session[2] .. '/' .. session[3], false
  end_session(id)
end
local _, _, more = return_claims(id, node, lost)
close_queues()
return { 'OK', more and '1' or '' }
