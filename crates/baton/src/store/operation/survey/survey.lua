#!lua flags=no-writes
-- Purpose: reads the fleet's members, sources and books; of a fleet that does not exist, nothing. If these are many, only
--          their names, which are then asked for in pages.
-- KEYS: 1 root
-- ARGV: none, or for a page: sessions | sources | queues, then names of that kind
-- Returns: OK now {{session, kind, host, pid, queues, lease, join number, joined, beat,
--          report} …}
--          {{source, queue, holder, epoch, cursor, ended} …} {{queue, counter …} …}
--          | MANY now {session …} {source …} {queue …} | NEWER found known | OLDER found known
-- Idempotency: reads only.
local unfit = unfit_fleet(true)
if unfit then return unfit end
local named = { sessions = {}, sources = {}, queues = {} }
if ARGV[1] then
  for i = 2, #ARGV do named[ARGV[1]][i - 1] = ARGV[i] end
else
  named.sessions = call('ZRANGE', key.sessions, 0, -1)
  named.sources, named.queues = call('SMEMBERS', key.sources), call('SMEMBERS', key.queues)
  if #named.sessions + #named.sources + #named.queues > SURVEYED_AT_ONCE then
    return { 'MANY', text(now), named.sessions, named.sources, named.queues }
  end
end
local sessions, sources, queues = {}, {}, {}
for _, id in ipairs(named.sessions) do
  local record = call('HMGET', key.session(id), 'kind', 'host', 'pid', 'queues', 'lease', 'join_no', 'joined',
    'beat', 'report')
  -- What is left of an unreaped is no session.
  if record[1] then
    table.insert(record, 1, id)
    sessions[#sessions + 1] = record
  end
end
for _, name in ipairs(named.sources) do
  local record = call('HMGET', key.source(name), 'queue', 'holder', 'epoch', 'cursor', 'ended')
  -- One that was removed since its name was read is none.
  if record[1] then
    record[2] = alive(record[2]) or ''
    for field = 1, 5 do record[field] = record[field] or '' end
    table.insert(record, 1, name)
    sources[#sources + 1] = record
  end
end
for _, name in ipairs(named.queues) do
  if known_queue(name) then queues[#queues + 1] = read_books(name) end
end
return { 'OK', text(now), sessions, sources, queues }
