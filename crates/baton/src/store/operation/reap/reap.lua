#!lua flags=allow-oom
-- Purpose: takes back what a session past its lease holds, with a crash counted for each message. The first call ends the
--          session; what is left then is taken back by the next.
-- KEYS: 1 root
-- ARGV: 1 session that asks, 2 session to be reaped
-- Returns: OK, 1 if something is left, kind, node, ms of silence unless the session had ended before, dead,
--          (queue back)… | ALIVE | GONE | STALE | HELD ms
-- Idempotency: a repeat goes on, or finds the session gone.
if not visit(ARGV[1]) then return { 'STALE' } end
local wait, clock = held(), advance()
if wait then return wait end
local target = ARGV[2]
local kind, silent = 'n', ''
local node, lost = read_unreaped(target)
if not node then
  local record = visit(target, 'host', 'pid', 'kind')
  if not record then return { 'GONE' } end
  local expires = tonumber(call('ZSCORE', key.sessions, target))
  if expires > clock then return { 'ALIVE' } end
  node, lost, kind = record[2] .. '/' .. record[3], true, record[4]
  silent = text(math.max(clock + tonumber(record[1]) - expires, 0))
  end_session(target)
end
local _, dead, more, by_queue = return_claims(target, node, lost)
close_queues()
local reply = { 'OK', more and '1' or '', kind, node, silent, text(dead) }
for name, count in pairs(by_queue) do
  reply[#reply + 1] = name
  reply[#reply + 1] = text(count)
end
return reply
