#!lua flags=no-writes
-- Purpose: reads the fleet's members, sources and books; of a fleet that does not exist, nothing.
-- KEYS: 1 root
-- ARGV: none
-- Returns: OK now {{session, kind, host, pid, queues, lease, join number, joined, beat,
--          report} …}
--          {{source, queue, holder, epoch, cursor, ended} …} {{queue, counter …} …}
--          | NEWER found known | OLDER found known
-- Idempotency: reads only.
local unfit = unfit_fleet(true)
if unfit then return unfit end
local sessions, sources, queues = {}, {}, {}
local members = call('ZRANGE', key.sessions, 0, -1)
for _, id in ipairs(members) do
  local record = call('HMGET', key.session(id), 'kind', 'host', 'pid', 'queues', 'lease', 'join_no', 'joined',
    'beat', 'report')
  -- What is left of an estate is no session.
  if record[1] then
    table.insert(record, 1, id)
    sessions[#sessions + 1] = record
  end
end
for i, name in ipairs(call('SMEMBERS', key.sources)) do
  local record = call('HMGET', key.source(name), 'queue', 'holder', 'epoch', 'cursor', 'ended')
  record[2] = alive(record[2]) or ''
  for field = 1, 5 do record[field] = record[field] or '' end
  table.insert(record, 1, name)
  sources[i] = record
end
for i, name in ipairs(call('SMEMBERS', key.queues)) do queues[i] = read_books(name) end
return { 'OK', text(now), sessions, sources, queues }
