#!lua flags=no-writes
-- Purpose: tells which of the queues a session works for are worth a claim.
-- KEYS: 1 root
-- ARGV: 1 session
-- Returns: OK {queue, ms until there is something, …} | STALE
-- Idempotency: reads only.
local id = ARGV[1]
local session = call('HMGET', key.session(id), 'lease', 'queues', 'suspects')
if not session[1] then return { 'STALE' } end
local may_take_suspects, found = tonumber(session[3] or 0) == 0, {}
for name in string.gmatch(session[2], '[^,]+') do
  local queue = known_queue(name)
  if queue and queue.paused == 0 then
    local ms
    local ready = has_ready(queue) and (call('EXISTS', key.ready(name), key.inbox(name, queue.inbox, queue.pushed)) > 0
      or may_take_suspects and call('EXISTS', key.suspects(name)) == 1)
    if ready or not call('ZSCORE', key.waiters(name), id) then
      ms = 0
    elseif queue.delayed > 0 then
      local first = call('ZRANGE', key.delayed(name), 0, 0, 'WITHSCORES')
      ms = first[2] and math.max(tonumber(first[2]) - now, 0)
    end
    if ms then
      found[#found + 1] = name
      found[#found + 1] = text(ms)
    end
  end
end
return { 'OK', found }
