-- Bodies: found in stored parcels without reading more than is given away.
-- The format is that of message/parcel: format u8 | count u32 | base u32 | end u32 * count | records; in a headed one
-- the section of headers that all share comes before the records, and each record begins with the message's own.
-- Both sections of a message without headers.
local NO_HEADERS = '\0\0\0\0'

local function body_key(name, span)
  if span.size == 0 then return key.own(name, text(span.first)) end
  return key.parcel(name, text(span.parcel))
end

-- The `index`-th number of four bytes.
local function number(bytes, index)
  return (struct.unpack('<I4', bytes, index * 4 - 3))
end

-- The section of headers that lies `at` bytes into a parcel, with its length.
local function section(bytes, at)
  return string.sub(bytes, at + 1, at + 2 + struct.unpack('<I2', bytes, at + 1))
end

-- The bytes `from` .. `to` of where a span lies, and the key: that of its parcel, or of what is left of a thinned one. No
-- bytes if neither is there.
local function read_home(name, span, from, to, known)
  local at = known or body_key(name, span)
  local bytes = call('GETRANGE', at, from, to)
  if bytes == '' and span.size > 0 and not known then
    at = key.thinned(name, text(span.parcel))
    bytes = call('GETRANGE', at, from, to)
  end
  return bytes, at
end

-- The section of headers that lies `from` bytes into a stored parcel.
local function stored_section(at, from)
  local length = struct.unpack('<I2', call('GETRANGE', at, from, from + 1))
  return call('GETRANGE', at, from, from + 1 + length)
end

-- That which all messages of a parcel share; empty if it is plain.
local function read_shared(at, count, format)
  return format == HEADED and stored_section(at, PARCEL_TABLE + 4 * count) or ''
end

-- Finds as many messages of a span as weigh no more than `budget` bytes: a record of how many, their weight, and what
-- their parcel is put together from: `head`, then the bytes `from` .. `to` at `at`. A short one is all head.
-- Nothing if not even one fits, false if the bodies are missing.
local function find(name, span, budget)
  if span.carried then
    if not span.body then return false end
    local weight = span.carried - PARCEL_TABLE - 4
    if weight > budget then return nil end
    return { count = 1, bytes = weight, head = span.body, from = 1, to = 0 }
  end
  local at = body_key(name, span)
  local count = math.max(span.size, 1)
  if span.len == count then
    local head = count == 1 and call('GETRANGE', at, 0, INLINE - 1) or ''
    local is_all = #head > 0 and #head < INLINE
    local bytes = is_all and #head or call('STRLEN', at)
    local weight = bytes - PARCEL_TABLE - 4 * count
    if weight < 0 then return false end
    if weight <= budget then
      if not is_all then head = '' end
      return { count = count, bytes = weight, head = head, at = at, from = #head, to = bytes - 1 }
    elseif count == 1 then
      return nil
    end
  end
  local start = span.first - span.parcel
  -- From the number before the first end of the cut on: the end of the message before. At the start it is the base, and
  -- the table is read from its beginning; else that is read by itself.
  local ends
  ends, at = read_home(name, span, start == 0 and 0 or PARCEL_TABLE + 4 * (start - 1), PARCEL_TABLE + 4 * (start + span.len) - 1)
  local first = start == 0 and ends or call('GETRANGE', at, 0, PARCEL_TABLE - 1)
  if start == 0 then ends = string.sub(ends, PARCEL_TABLE - 3) end
  if #ends ~= 4 + 4 * span.len then return false end
  local format, base = string.byte(first), number(string.sub(first, PARCEL_TABLE - 3, PARCEL_TABLE), 1)
  local shared, data = read_shared(at, count, format), PARCEL_TABLE + 4 * count
  budget = budget - #shared
  local before = number(ends, 1)
  local taken = span.len
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
  local records = number(ends, taken + 1) - before
  local head = struct.pack('<BI4I4', format, taken, before) .. string.sub(ends, 5, 4 + 4 * taken) .. shared
  local from = data + #shared + before - base
  return { count = taken, bytes = #shared + records, head = head, at = at, from = from, to = from + records - 1 }
end

-- The parcel of what was found.
local function fetch(found)
  if found.from > found.to then return found.head end
  local bytes = call('GETRANGE', found.at, found.from, found.to)
  -- Text that is put together is copied and hashed anew.
  return found.head == '' and bytes or found.head .. bytes
end

-- What comes before the body in a parcel of one message; headers are both sections, or empty.
local function head_of(headers, body)
  if headers == '' or headers == NO_HEADERS then return struct.pack('<BI4I4I4', PLAIN, 1, 0, #body) end
  local shared = section(headers, 0)
  return struct.pack('<BI4I4I4', HEADED, 1, 0, #headers - #shared + #body) .. headers
end

-- The headers of a message that has failed again: this text is its last error; an empty one leaves none.
local function failed_again(headers, reason)
  if headers == '' then
    if reason == '' then return '' end
    headers = NO_HEADERS
  end
  local shared = section(headers, 0)
  local own, fields, at = section(headers, #shared), {}, 3
  while at <= #own do
    local tag, length = struct.unpack('<BI2', own, at)
    if tag ~= LAST_ERROR then fields[#fields + 1] = string.sub(own, at, at + 2 + length) end
    at = at + 3 + length
  end
  if reason ~= '' then fields[#fields + 1] = struct.pack('<BI2', LAST_ERROR, #reason) .. reason end
  own = table.concat(fields)
  return shared .. struct.pack('<I2', #own) .. own
end

-- As each_message() does, for long bodies: each is read by itself and once.
local function each_long_message(span, found, each)
  local at, count, top = found.at, found.count, found.head
  local data, is_whole = PARCEL_TABLE + 4 * count, top == ''
  if is_whole then top = call('GETRANGE', at, 0, data - 1) end
  local format, ends, shared = string.byte(top), string.sub(top, PARCEL_TABLE - 3, data), ''
  if format == HEADED then shared = is_whole and stored_section(at, data) or section(top, data) end
  local records, base = is_whole and data + #shared or found.from, number(ends, 1)
  for i = 1, count do
    local before, past, own = number(ends, i), number(ends, i + 1), ''
    local from = records + before - base
    if format == HEADED then own = stored_section(at, from) end
    local body = call('GETRANGE', at, from + #own, records + past - base - 1)
    local head = struct.pack('<BI4I4I4', format, 1, before, past) .. shared .. own
    each(span.first + i - 1, head, body, shared .. own)
  end
  return true
end

-- The headers and the body of a short message that is given as its parcel.
local function open_parcel(parcel)
  local data = PARCEL_TABLE + 4
  if string.byte(parcel) ~= HEADED then return '', string.sub(parcel, data + 1) end
  local shared = section(parcel, data)
  local headers = shared .. section(parcel, data + #shared)
  return headers, string.sub(parcel, data + #headers + 1)
end

-- Every message of a span by itself: calls each(id, what comes before the body in its parcel, body, headers) in the
-- order of ids. False, and no call, if the bodies are missing.
local function each_message(name, span, each)
  if span.body then
    local headers, body = open_parcel(span.body)
    each(span.first, string.sub(span.body, 1, PARCEL_TABLE + 4 + #headers), body, headers)
    return true
  end
  local found = find(name, span, math.huge)
  if not found then return false end
  if found.to - found.from >= INLINE * found.count then return each_long_message(span, found, each) end
  local parcel, count = fetch(found), found.count
  local format, data = string.byte(parcel), PARCEL_TABLE + 4 * count
  local ends, shared = string.sub(parcel, PARCEL_TABLE - 3, data), ''
  if format == HEADED then shared = section(parcel, data) end
  local base = number(ends, 1)
  data = data + #shared
  for i = 1, count do
    local before, past = number(ends, i), number(ends, i + 1)
    local record, headers = string.sub(parcel, data + before - base + 1, data + past - base), ''
    if format == HEADED then
      local own = section(record, 0)
      headers, record = shared .. own, string.sub(record, #own + 1)
    end
    each(span.first + i - 1, struct.pack('<BI4I4I4', format, 1, before, past) .. headers, record, headers)
  end
  return true
end

-- Finds what spans of a claim carry: all of it is read once while the claim is open.
local function load_carried(id, claim, spans)
  for _, span in ipairs(spans) do
    if span.carried and span.at and not span.body then
      claim.bodies = claim.bodies or call('HGET', key.carried(id), claim.place) or ''
      local body = string.sub(claim.bodies, span.at + 1, span.at + span.carried)
      if #body == span.carried then span.body = body end
    end
  end
end

-- Writes a message's own parcel under its key; what is long is not put together here.
local function write_own(name, message, head, body)
  local at = key.own(name, text(message))
  if #body <= INLINE then
    call('SET', at, head .. body)
  else
    call('SET', at, head)
    call('APPEND', at, body)
  end
end

-- Gives a message its own parcel, which it carries if that is short.
local function give_own(queue, span, head, body)
  local bytes = #head + #body
  add(queue, 'bytes', bytes)
  if bytes <= CARRIED then
    span.body, span.carried = head .. body, bytes
  else
    write_own(queue.name, span.first, head, body)
  end
end
