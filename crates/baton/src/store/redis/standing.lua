#!lua flags=no-writes
-- Purpose: tells a migration the format of a fleet and the sessions that are still there.
-- KEYS: 1 root
-- ARGV: none
-- Returns: OK format ('' for no fleet) stamp {{session, kind, host, pid, lease, expiry, beat} …} | NEWER found known
--          | DESTROYING
-- Idempotency: reads only.
local unfit, format = read_format()
if unfit then return unfit end
local sessions, members = {}, call('ZRANGE', key.sessions, 0, -1, 'WITHSCORES')
for i = 1, #members, 2 do
  local record = call('HMGET', key.session(members[i]), 'kind', 'host', 'pid', 'lease', 'beat')
  if record[1] then sessions[#sessions + 1] = { members[i], record[1], record[2], record[3], record[4], members[i + 1], record[5] } end
end
return { 'OK', format or '', read_stamp(), sessions }
