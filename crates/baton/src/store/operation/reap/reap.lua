#!lua flags=allow-oom
-- Purpose: takes back what a session past its lease holds, with a crash counted for each message. The first call ends the
--          session; what is left then is taken back by the next.
-- KEYS: 1 root
-- ARGV: 1 session that asks, 2 session to be reaped
-- Returns: OK back dead, 1 if something is left | ALIVE | GONE | STALE | HELD ms
-- Idempotency: a repeat goes on, or finds the session gone.
if not visit(ARGV[1]) then return { 'STALE' } end
local wait, clock = held(), advance()
if wait then return wait end
local target = ARGV[2]
local node, lost = read_unreaped(target)
if not node then
  local record = visit(target, 'host', 'pid')
  if not record then return { 'GONE' } end
  if tonumber(call('ZSCORE', key.sessions, target)) > clock then return { 'ALIVE' } end
  node, lost = record[2] .. '/' .. record[3], true
  end_session(target)
end
local back, dead, more = return_claims(target, node, lost)
close_queues()
return { 'OK', text(back), text(dead), more and '1' or '' }
