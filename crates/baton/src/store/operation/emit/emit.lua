#!lua
-- Purpose: adds events to the log of a call. Not allowed at maxmemory: refused whole.
-- KEYS: 1 root
-- ARGV: 1 session, 2 claim number, 3 queue, 4 id, 5 number of the first event, 6 bytes that the log may hold, 7 1 if what
--       nobody has read may go, then two for each event: key ('' none), event
-- Returns: OK | FULL | STALE | NOTHELD | TURN last | KEYSFULL
-- Idempotency: by number since the message was claimed; those before are not kept again.
local id, place = ARGV[1], ARGV[3] .. ' ' .. ARGV[4]
if not visit(id) then return { 'STALE' } end
local record = calls.read(call('HGET', key.joined, place) or ARGV[3] .. '/' .. ARGV[4])
if not record or record.ended ~= 0 then return { 'NOTHELD' } end
local hold = calls.hold(record, place)
if hold.session ~= id or hold.claim_no ~= ARGV[2] then return { 'NOTHELD' } end
local number, count = tonumber(ARGV[5]), (#ARGV - 7) / 2
if number ~= hold.emitted + 1 then
  if number + count <= hold.emitted + 1 then return { 'OK' } end
  return { 'TURN', text(hold.emitted) }
end

local seen, keys, key_bytes, new, bytes = {}, {}, 0, {}, 0
for at = 8, #ARGV, 2 do
  if ARGV[at] ~= '' then keys[#keys + 1] = ARGV[at] end
end
if #keys > 0 then
  for at, known in ipairs(call('SMISMEMBER', key.emit_keys(record.name), unpack(keys))) do
    if known == 1 then seen[keys[at]] = true end
  end
end
local fresh = {}
for at = 8, #ARGV, 2 do
  local own, event = ARGV[at], ARGV[at + 1]
  if own == '' or not seen[own] then
    if own ~= '' then
      seen[own], fresh[#fresh + 1], key_bytes = true, own, key_bytes + #own
    end
    new[#new + 1], bytes = event, bytes + #event + AN_EVENT
  end
end
if record.keys + key_bytes > MAX_EMIT_KEYS then return { 'KEYSFULL' } end

local over = record.bytes + bytes - tonumber(ARGV[6])
if over > 0 then
  local furthest = calls.furthest(record)
  local below = ARGV[7] ~= '1' and furthest or record.next
  local events, freed, gone, most = key.events(record.name), 0, 0, below - record.first
  while freed < over and gone < most do
    local page = call('LRANGE', events, gone, math.min(gone + 128, most) - 1)
    if #page == 0 then break end
    for _, event in ipairs(page) do
      if freed >= over then break end
      freed, gone = freed + #event + AN_EVENT, gone + 1
    end
  end
  if gone > 0 then call('LTRIM', events, gone, -1) end
  record.first, record.bytes = record.first + gone, record.bytes - freed
  -- What is by itself more than the bound is kept alone.
  if freed < over and below < record.next then
    calls.write(record)
    return { 'FULL' }
  end
end
if #fresh > 0 then call('SADD', key.emit_keys(record.name), unpack(fresh)) end
record.keys = record.keys + key_bytes
for _, event in ipairs(new) do calls.append(record, event) end
hold.emitted = hold.emitted + count
calls.put_hold(record, place, hold)
calls.write(record)
return { 'OK' }
