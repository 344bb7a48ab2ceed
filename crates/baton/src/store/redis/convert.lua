#!lua flags=allow-oom
-- Purpose: one step of a migration to this format: marks the fleet and packs its counters, notes which messages of partly
--          settled parcels have gone, takes one session out as if it had been reaped, and with the last of them ends it.
--          Parcels, spans, books and all else of format 1 are good still: what is new since then is written as it comes.
-- KEYS: 1 root
-- ARGV: 1 stamp of when the fleet was looked at
-- Returns: OK sessions back dead, sessions left, or 1 before the first (none: it is of this format now) | DISTURBED | NEWER found known
--          | DESTROYING
-- Idempotency: each step finds what is left; behind the last one nothing is. Marked, a fleet is refused by every release:
--              older ones take it for newer.
local unfit, format = read_format()
if unfit then return unfit end
if not format or tonumber(format) == FORMAT then return { 'OK', '0', '0', '0', '0' } end
if read_stamp() ~= ARGV[1] then return { 'DISTURBED' } end
-- Spans that a step looks at, and entries of a line read at once.
local LOOKED_AT, LISTED = 4000, 64

-- Format 4 had the counters that most calls move in another order, and no inbox; before, they were fields like the
-- others.
local function pack_counters()
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

-- In formats 5 and 6 an inbox had the same name at all times, and a bundle held its entries: they get lists of their own, as
-- the line is looked through, a queue after the other. `unlisted` are those left, `at` tells how far it is in one.
local UNLISTED = root .. ':unlisted'
local BUNDLE_OF_6 = '^%*(%d+),%d+,([%d;]+)|()'
local function begin_list(name)
  local former, queue = root .. ':i:' .. name, known_queue(name)
  if call('EXISTS', former) == 1 then call('RENAME', former, key.inbox(name, queue.inbox, queue.pushed)) end
end

local function list_bundle(name, place, written)
  local home, lengths, at = string.match(written, BUNDLE_OF_6)
  local entries, each = {}, tonumber(lengths)
  local next_length = not each and string.gmatch(lengths, '%d+')
  while at <= #written do
    local past = at + (each or tonumber(next_length()))
    entries[#entries + 1], at = string.sub(written, at, past - 1), past
  end
  call('RPUSH', key.bundle(name, home), unpack(entries))
  call('LSET', key.ready(name), place, write_bundle(tonumber(home), #entries, weigh_entries(entries), home))
end

-- Looks at up to so many entries of a line, a bundle counted as many; how many more there might have been.
local function list_on(name, most)
  local at = tonumber(call('HGET', key.left(name), 'at') or 0)
  if at == 0 then begin_list(name) end
  -- What a queue costs by itself.
  most = math.max(most - LISTED, 1)
  while most > 0 do
    local entries = call('LRANGE', key.ready(name), at, at + LISTED - 1)
    if #entries == 0 then
      call('UNLINK', key.left(name))
      call('SREM', UNLISTED, name)
      return most
    end
    for _, entry in ipairs(entries) do
      if string.find(entry, '|', 1, true) and is_bundle(entry) then
        list_bundle(name, at, entry)
        most = most - LISTED
      end
      at, most = at + 1, most - 1
    end
    call('HSET', key.left(name), 'at', text(at))
  end
  return 0
end

-- Up to format 4 it was known of a partly settled parcel how many messages are left, not which. First all have gone; then
-- what waits and what is claimed is looked through for those left. `at` and `bytes` beside the parcels tell how far that
-- is, and what these count for.
local function begin_looking(name)
  for _, parcel in ipairs(call('HKEYS', key.left(name))) do
    local size = call('GETRANGE', key.parcel(name, parcel), 1, 4)
    if size == '' then
      call('HDEL', key.left(name), parcel)
    else
      set_bits(key.gone(name, parcel), { { start = 0, len = (struct.unpack('<I4', size)) } }, 1)
    end
  end
end
local function note_left(name, written)
  local parcel, size, first, len = string.match(written, '^(%d+),(%d+),(%d+),(%d+)')
  if not parcel or size == '0' or call('HEXISTS', key.left(name), parcel) == 0 then return end
  local span = { parcel = tonumber(parcel), size = tonumber(size), first = tonumber(first), len = tonumber(len) }
  set_bits(key.gone(name, parcel), { { start = span.first - span.parcel, len = span.len } }, 0)
  call('HINCRBY', key.left(name), 'bytes', weigh_part(name, span) or 0)
end

-- Looks at up to so many spans of a queue; how many more there might have been.
local function look_on(name, most)
  local ready, at = call('LLEN', key.ready(name)), tonumber(call('HGET', key.left(name), 'at') or 0)
  for _, line in ipairs({ { key.ready(name), 0 }, { key.suspects(name), ready } }) do
    local from = at - line[2]
    local spans = most > 0 and from >= 0 and call('LRANGE', line[1], from, from + most - 1) or {}
    for _, written in ipairs(spans) do note_left(name, written) end
    at, most = at + #spans, most - #spans
  end
  call('HSET', key.left(name), 'at', text(at))
  if most == 0 then return 0 end
  for _, id in ipairs(call('ZRANGE', key.sessions, 0, -1)) do
    for _, written in ipairs(call('HVALS', key.claims(id))) do
      local bar = string.find(written, '|', 1, true)
      if string.sub(written, 1, bar - 1) == name then
        for word in string.gmatch(string.sub(written, bar + 1), '[^;]+') do note_left(name, word) end
      end
    end
  end
  local counted, known = 0, call('HGETALL', key.left(name))
  for i = 1, #known, 2 do
    if known[i] == 'bytes' then
      counted = counted - tonumber(known[i + 1])
    elseif known[i] ~= 'at' then
      counted = counted + call('STRLEN', key.parcel(name, known[i]))
    end
  end
  lighten(known_queue(name), counted)
  call('UNLINK', key.left(name))
  return most
end

if call('HSETNX', key.meta, 'migrating', format) == 1 then
  call('HSET', key.meta, 'format', text(FORMAT))
  if tonumber(format) < 5 then
    pack_counters()
    for _, name in ipairs(call('SMEMBERS', key.queues)) do begin_looking(name) end
  elseif tonumber(format) < 7 then
    call('SUNIONSTORE', UNLISTED, key.queues)
  end
end
local most = LOOKED_AT
for _, name in ipairs(call('SMEMBERS', key.queues)) do
  if most > 0 and tonumber(format) < 5 and call('EXISTS', key.left(name)) == 1 then most = look_on(name, most) end
end
while most > 0 do
  local name = call('SRANDMEMBER', UNLISTED)
  if not name then break end
  most = math.max(list_on(name, most), 0)
end
close_queues()
-- What results count for was not kept up to format 4; `weighed` tells how many were looked at.
local weighed = tonumber(call('HGET', key.meta, 'weighed') or 0)
local results = most > 0 and tonumber(format) < 5 and call('ZRANGE', key.result_ends, weighed, weighed + most - 1, 'WITHSCORES') or {}
local weight = 0
for at = 1, #results, 2 do weight = weight + result_weight(results[at], text(tonumber(results[at + 1]))) end
call('HINCRBY', key.meta, 'results', weight)
call('HSET', key.meta, 'weighed', text(weighed + #results / 2))
most = most - #results / 2
if most == 0 then return { 'OK', '0', '0', '0', text(math.max(call('ZCARD', key.sessions), 1)) } end
local sessions, back, dead = 0, 0, 0
local id = call('ZRANGE', key.sessions, 0, 0)[1]
if id then
  local node, more = read_unreaped(id), nil
  if not node then
    local record = call('HMGET', key.session(id), 'host', 'pid')
    node = (record[1] or '') .. '/' .. (record[2] or '')
    end_session(id)
    -- Up to format 5 a session had one hash of its submits.
    call('UNLINK', root .. ':n:' .. id)
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
  call('HDEL', key.meta, 'migrating', 'weighed')
end
return { 'OK', text(sessions), text(back), text(dead), text(left) }
