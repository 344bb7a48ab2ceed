#!lua flags=allow-oom
-- Purpose: one step of a migration to this format: marks the fleet and packs its counters, takes one session out as if it had been reaped, and
--          with the last of them ends it. Parcels, pieces, books and all else
--          of format 1 are good still: what is new since then is written as it comes.
-- KEYS: 1 root
-- ARGV: 1 stamp of when the fleet was looked at
-- Returns: OK sessions back dead, sessions left (none: it is of this format now) | DISTURBED | NEWER found known
--          | PURGING
-- Idempotency: each step finds what is left; behind the last one nothing is. Marked, a fleet is refused by every release:
--              older ones take it for newer.
local unfit, format = read_format()
if unfit then return unfit end
if not format or tonumber(format) == FORMAT then return { 'OK', '0', '0', '0', '0' } end
if read_stamp() ~= ARGV[1] then return { 'DISTURBED' } end
if call('HSETNX', key.meta, 'migrating', format) == 1 then
  call('HSET', key.meta, 'format', text(FORMAT))
  -- Format 4 had them in another order, and no inboxes; before, they were fields like the others.
  local moving, of_4 = {}, { 'pushed', 'ready', 'delayed', 'in_flight', 'done', 'done_sum', 'bytes', 'paused', 'waiting', 'held' }
  for counter in pairs(MOVING) do moving[#moving + 1] = counter end
  for _, name in ipairs(call('SMEMBERS', key.queues)) do
    local queue, stored = { name = name, inbox = 0 }, call('HMGET', key.queue(name), unpack(moving))
    for i, counter in ipairs(moving) do queue[counter] = tonumber(stored[i] or 0) end
    if tonumber(format) == 4 then
      local packed = { struct.unpack('<dddddddddd', call('GET', key.counts(name))) }
      for i, counter in ipairs(of_4) do queue[counter] = packed[i] end
    end
    write_counts(queue)
    call('HDEL', key.queue(name), unpack(moving))
  end
end
local sessions, back, dead = 0, 0, 0
local id = call('ZRANGE', key.sessions, 0, 0)[1]
if id then
  local node, more = read_estate(id), nil
  if not node then
    local record = call('HMGET', key.session(id), 'host', 'pid')
    node = (record[1] or '') .. '/' .. (record[2] or '')
    end_session(id)
  end
  back, dead, more = return_claims(id, node, true)
  close_queues()
  sessions = more and 0 or 1
end
local left = call('ZCARD', key.sessions)
if left == 0 then
  -- Nobody works or waits any more.
  for _, name in ipairs(call('SMEMBERS', key.queues)) do
    call('HDEL', key.queue(name), 'workers')
    call('UNLINK', key.waiters(name))
  end
  call('UNLINK', key.leases, key.nodes)
  keep_least()
  call('HDEL', key.meta, 'migrating')
end
return { 'OK', text(sessions), text(back), text(dead), text(left) }
