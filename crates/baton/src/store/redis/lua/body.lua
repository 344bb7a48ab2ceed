-- Bodies: found in stored parcels without reading more than is given away, and removed with their last message.
-- The format is that of message/parcel.rs: format u8 | count u32 | base u32 | end u32 * count | bodies.

local function body_key(name, piece)
  if piece.size == 0 then return key.own(name, text(piece.first)) end
  return key.parcel(name, text(piece.parcel))
end

-- The `index`-th number of four bytes.
local function number(bytes, index)
  return (struct.unpack('<I4', bytes, index * 4 - 3))
end

-- A parcel of one message whose body lies between these ends.
local function single(before, past, body)
  return struct.pack('<BI4I4I4', PARCEL_FORMAT, 1, before, past) .. body
end

-- Finds as many messages of a piece as fit into `budget` body bytes: a record of how many, their body bytes, and what
-- their parcel is put together from: `head`, then the bytes `from` .. `to` at `at`. A short one is all head.
-- Nothing if not even one fits, false if the bodies are missing.
local function find(name, piece, budget)
  local at = body_key(name, piece)
  local count = math.max(piece.size, 1)
  if piece.len == count then
    local head = count == 1 and call('GETRANGE', at, 0, INLINE - 1) or ''
    local is_all = #head > 0 and #head < INLINE
    local bytes = is_all and #head or call('STRLEN', at)
    local bodies = bytes - PARCEL_HEADER - 4 * count
    if bodies < 0 then return false end
    if bodies <= budget then
      if not is_all then head = '' end
      return { count = count, bytes = bodies, head = head, at = at, from = #head, to = bytes - 1 }
    elseif count == 1 then
      return nil
    end
  end
  local start = piece.first - piece.parcel
  -- The number before the first end of the cut: the base, or the end of the message before.
  local from = start == 0 and PARCEL_HEADER - 4 or PARCEL_HEADER + 4 * (start - 1)
  local ends = call('GETRANGE', at, from, PARCEL_HEADER + 4 * (start + piece.len) - 1)
  if #ends ~= 4 + 4 * piece.len then return false end
  local before = number(ends, 1)
  local base = start == 0 and before or number(call('GETRANGE', at, PARCEL_HEADER - 4, PARCEL_HEADER - 1), 1)
  local taken = piece.len
  if number(ends, taken + 1) - before > budget then
    -- The largest number of messages that fits lies in low .. high - 1; ends never decrease.
    local low, high = 0, taken
    while high - low > 1 do
      local middle = math.floor((low + high) / 2)
      if number(ends, middle + 1) - before <= budget then low = middle else high = middle end
    end
    taken = low
  end
  if taken == 0 then return nil end
  local bytes = number(ends, taken + 1) - before
  local head = struct.pack('<BI4I4', PARCEL_FORMAT, taken, before) .. string.sub(ends, 5, 4 + 4 * taken)
  local data = PARCEL_HEADER + 4 * count + before - base
  return { count = taken, bytes = bytes, head = head, at = at, from = data, to = data + bytes - 1 }
end

-- The parcel of what was found.
local function fetch(found)
  if found.from > found.to then return found.head end
  return found.head .. call('GETRANGE', found.at, found.from, found.to)
end

-- Every message of a piece by itself: calls each(id, parcel of one, body) in the order of ids. False, and no call, if
-- the bodies are missing.
local function each_message(name, piece, each)
  local found = find(name, piece, math.huge)
  if not found then return false end
  local parcel, count = fetch(found), found.count
  local ends, data = string.sub(parcel, 6, PARCEL_HEADER + 4 * count), PARCEL_HEADER + 4 * count
  local base = number(ends, 1)
  for i = 1, count do
    local before, past = number(ends, i), number(ends, i + 1)
    local body = string.sub(parcel, data + before - base + 1, data + past - base)
    each(piece.first + i - 1, single(before, past, body), body)
  end
  return true
end

-- Messages of a piece have left their home; with the last one the home goes too. A piece that is its whole parcel
-- needs no look at the count of those left: there is none yet.
local function release(queue, piece)
  if piece.size > piece.len then
    local left_key, parcel = key.left(queue.name), text(piece.parcel)
    local before = call('HGET', left_key, parcel)
    local left = tonumber(before or piece.size) - piece.len
    if left > 0 then
      call('HSET', left_key, parcel, text(left))
      return
    end
    if before then call('HDEL', left_key, parcel) end
  end
  local at = body_key(queue.name, piece)
  add(queue, 'bytes', -call('STRLEN', at))
  call('UNLINK', at)
  -- Bodies that were missing are counted still: how many bytes they had is not known.
  if queue.ready + queue.delayed + queue.in_flight == 0 then queue.bytes = 0 end
end
