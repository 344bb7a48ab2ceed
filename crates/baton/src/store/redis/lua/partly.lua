-- Parcels of which some messages have gone: engine/bodies.rs in Lua. A message counts for its end and its record, the first
-- also for what stands before the records; so the bytes of a queue fall with each that leaves, and a deep audit adds up the
-- same from what is stored. Which have gone is a text of bits in the order of ids. When few are left, the parcel is stored
-- once more without the bodies of the others, under another key: whoever was told where in the former one bodies lie finds
-- nothing there and asks again.

-- Ends that are read at once rather than the first and the last by themselves.
local FEW_ENDS = 64
-- What a parcel costs that is thinned, and each message left of it, beside the bytes that pass through Lua.
local A_PARCEL, A_MESSAGE = 4096, 512
-- What a call may still spend on that.
local thinning = nil

-- What the messages of a span count for, which is not its whole parcel, and the key where they lie, if that is not known;
-- nothing for bytes if they are missing.
local function weigh_part(name, span, known)
  local start = span.first - span.parcel
  -- The end of the message before, or the base with what stands before it.
  local skipped = start == 0 and PARCEL_TABLE - 4 or 0
  local from, to = PARCEL_TABLE - 4 + 4 * start - skipped, PARCEL_TABLE - 1 + 4 * (start + span.len)
  local ends, at = read_home(name, span, from, span.len > FEW_ENDS and from + skipped + 3 or to, known)
  if span.len > FEW_ENDS then ends = ends .. call('GETRANGE', at, to - 3, to) end
  if #ends < skipped + 8 then return nil, at end
  local bytes = 4 * span.len + struct.unpack('<I4', ends, #ends - 3) - struct.unpack('<I4', ends, skipped + 1)
  if start == 0 then bytes = bytes + PARCEL_TABLE + #read_shared(at, span.size, string.byte(ends)) end
  return bytes, at
end

-- Sets the bits of ranges, each as `start` and `len`.
local function set_bits(at, ranges, bit)
  local sets = {}
  local function set(from, count)
    if count == 0 then return end
    local n = #sets
    sets[n + 1], sets[n + 2], sets[n + 3], sets[n + 4] = 'SET', 'u' .. count, from, bit * (2 ^ count - 1)
  end
  for _, range in ipairs(ranges) do
    local past = range.start + range.len
    if range.len <= 32 then
      set(range.start, range.len)
    else
      -- Whole bytes, and the bits at both sides.
      local first, last = math.ceil(range.start / 8), math.floor(past / 8)
      set(range.start, 8 * first - range.start)
      set(8 * last, past - 8 * last)
      call('SETRANGE', at, first, string.rep(string.char(255 * bit), last - first))
    end
  end
  for from = 1, #sets, 1000 do call('BITFIELD', at, unpack(sets, from, math.min(from + 999, #sets))) end
end

-- Stores a parcel at `at` once more without the bodies of those that have gone, if that is within what a call may spend.
local function thin(name, parcel, size, at, gone, left)
  local data = PARCEL_TABLE + 4 * size
  local cost = data + A_PARCEL + left * A_MESSAGE
  if cost > thinning then return end
  local head, bits = call('GETRANGE', at, 0, data - 1), call('GET', gone)
  bits = bits .. string.rep('\0', math.ceil(size / 8) - #bits)
  local format, _, base = struct.unpack('<BI4I4', head)
  local shared = read_shared(at, size, format)
  local ends, reads, bytes, passed = {}, {}, 0, 0
  local byte = string.find(bits, '[^\255]')
  while byte do
    local value = string.byte(bits, byte)
    for index = 8 * byte - 8, math.min(8 * byte, size) - 1 do
      if math.floor(value / 2 ^ (7 - index % 8)) % 2 == 0 then
        local from, to = struct.unpack('<I4I4', head, PARCEL_TABLE - 3 + 4 * index)
        ends[#ends + 1] = string.rep(struct.pack('<I4', bytes), index - passed)
        bytes, passed = bytes + to - from, index + 1
        ends[#ends + 1] = struct.pack('<I4', bytes)
        local last = reads[#reads]
        if last and last.to == from then last.to = to else reads[#reads + 1] = { from = from, to = to } end
      end
    end
    byte = string.find(bits, '[^\255]', byte + 1)
  end
  if cost + bytes > thinning then return end
  thinning = thinning - cost - bytes
  ends[#ends + 1] = string.rep(struct.pack('<I4', bytes), size - passed)
  local parts = { struct.pack('<BI4I4', format, size, 0), table.concat(ends), shared }
  local records = data + #shared - base
  for _, read in ipairs(reads) do
    if read.to > read.from then
      parts[#parts + 1] = call('GETRANGE', at, records + read.from, records + read.to - 1)
    end
  end
  call('SET', key.thinned(name, parcel), table.concat(parts))
  call('UNLINK', at)
end

-- Takes bytes off what a queue counts, which is none once it is empty: bodies that were missing are counted still, how
-- many bytes they had is not known.
local function lighten(queue, bytes)
  add(queue, 'bytes', -math.min(bytes, queue.bytes))
  if queue.ready + queue.delayed + queue.in_flight == 0 then queue.bytes = 0 end
end

-- Messages of a span have left their home; with the last one the home goes too. A span that is its whole parcel
-- needs no look at those gone: there are none. Of other parcels close_queues() does the rest, once a call.
local function release(queue, span)
  if span.carried then return lighten(queue, span.carried) end
  if span.size <= span.len then
    local at = body_key(queue.name, span)
    lighten(queue, call('STRLEN', at))
    call('UNLINK', at)
    return
  end
  local parts = queue.partly or {}
  local part = parts[span.parcel] or { size = span.size, gone = {}, len = 0 }
  queue.partly, parts[span.parcel] = parts, part
  local bytes, at = weigh_part(queue.name, span, part.at)
  lighten(queue, bytes or 0)
  part.at, part.len, part.is_missing = at, part.len + span.len, not bytes
  part.gone[#part.gone + 1] = { start = span.first - span.parcel, len = span.len }
end

-- Notes which messages of parcels have gone in this call, and drops or thins those parcels.
close_parts = function(queue)
  for first, part in pairs(queue.partly) do
    local parcel, most = text(first), math.floor(part.size / THINNED_AT)
    local gone = key.gone(queue.name, parcel)
    set_bits(gone, part.gone, 1)
    local left = part.size - call('BITCOUNT', gone)
    if left == 0 then
      call('UNLINK', part.at, gone)
    elseif left <= most and not part.is_missing and part.at == key.parcel(queue.name, parcel) then
      -- Once there are few enough; if that was too much for one call, once more whenever these have halved.
      local before = left + part.len
      local halved = select(2, math.frexp(before)) > select(2, math.frexp(left))
      if before > most or halved then thin(queue.name, parcel, part.size, part.at, gone, left) end
    end
  end
  queue.partly = false
end
