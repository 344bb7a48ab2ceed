-- Spans as text, in the form of message/span.rs: `first,size,born` for a fresh parcel, otherwise
-- `parcel,size,first,len,attempts,crashes,born` with size 0 for a copy of its own; behind those of calls what they are to them.
local function read_span(written)
  local first, size, born, role = string.match(written, '^(%d+),(%d+),(%d+)([cj]?)$')
  if first then
    first, size = tonumber(first), tonumber(size)
    return { parcel = first, size = size, first = first, len = size, attempts = 0, crashes = 0, born = tonumber(born),
      role = role ~= '' and role or nil }
  end
  local parcel, of, from, len, attempts, crashes, at
  parcel, of, from, len, attempts, crashes, at, role =
    string.match(written, '^(%d+),(%d+),(%d+),(%d+),(%d+),(%d+),(%d+)([cj]?)$')
  if not parcel then error({ err = 'DAMAGED unreadable span ' .. string.sub(written, 1, 80) }) end
  return {
    parcel = tonumber(parcel), size = tonumber(of), first = tonumber(from), len = tonumber(len),
    attempts = tonumber(attempts), crashes = tonumber(crashes), born = tonumber(at), role = role ~= '' and role or nil,
  }
end

local function write_span(span)
  local whole = span.size > 0 and span.parcel == span.first and span.size == span.len
  if whole and span.attempts == 0 and span.crashes == 0 then
    return string.format('%d,%d,%d', span.first, span.size, span.born) .. (span.role or '')
  end
  local parcel = span.size == 0 and span.first or span.parcel
  return string.format('%d,%d,%d,%d,%d,%d,%d',
    parcel, span.size, span.first, span.len, span.attempts, span.crashes, span.born) .. (span.role or '')
end

-- The same history over other messages in the same place.
local function over(span, first, len)
  return {
    parcel = span.parcel, size = span.size, first = first, len = len,
    attempts = span.attempts, crashes = span.crashes, born = span.born,
    carried = span.carried, at = span.at, body = span.body, role = span.role,
  }
end

local function by_id(a, b) return a.first < b.first end

-- What waits in a line: a span as text, and behind a bar the parcel of a short message, which so has no key of its own.
-- `carried` is its length, `body` the parcel. The second value is the span without it.
local function read_entry(entry)
  local bar = string.find(entry, '|', 1, true)
  if not bar then return read_span(entry), entry end
  local written = string.sub(entry, 1, bar - 1)
  local span = read_span(written)
  span.body = string.sub(entry, bar + 1)
  span.carried = #span.body
  return span, written
end

-- When one of an inbox or bundle was pushed.
local function born_single(entry)
  return tonumber(string.sub(entry, 1, BORN - 1))
end

-- When what stands in front of a line was pushed; nothing if it is a bundle whose list is missing.
local function born_of(name, entry)
  if not is_bundle(entry) then return read_entry(entry).born end
  local _, _, _, home = read_bundle(entry)
  local front = call('LINDEX', key.bundle(name, home), 0)
  return front and born_single(front)
end

local function write_entry(span)
  local written = write_span(span)
  return span.body and written .. '|' .. span.body or written
end
