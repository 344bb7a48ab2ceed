-- Pieces as text, in the form of message/piece.rs: `first,size,born` for a fresh parcel, otherwise
-- `parcel,size,first,len,attempts,losses,born` with size 0 for a copy of its own; behind those of calls what they are to them.
local function read_piece(written)
  local first, size, born, part = string.match(written, '^(%d+),(%d+),(%d+)([cj]?)$')
  if first then
    first, size = tonumber(first), tonumber(size)
    return { parcel = first, size = size, first = first, len = size, attempts = 0, losses = 0, born = tonumber(born),
      part = part ~= '' and part or nil }
  end
  local parcel, of, from, len, attempts, losses, at
  parcel, of, from, len, attempts, losses, at, part =
    string.match(written, '^(%d+),(%d+),(%d+),(%d+),(%d+),(%d+),(%d+)([cj]?)$')
  if not parcel then error({ err = 'DAMAGED unreadable piece ' .. string.sub(written, 1, 80) }) end
  return {
    parcel = tonumber(parcel), size = tonumber(of), first = tonumber(from), len = tonumber(len),
    attempts = tonumber(attempts), losses = tonumber(losses), born = tonumber(at), part = part ~= '' and part or nil,
  }
end

local function write_piece(piece)
  local whole = piece.size > 0 and piece.parcel == piece.first and piece.size == piece.len
  if whole and piece.attempts == 0 and piece.losses == 0 then
    return string.format('%d,%d,%d', piece.first, piece.size, piece.born) .. (piece.part or '')
  end
  local parcel = piece.size == 0 and piece.first or piece.parcel
  return string.format('%d,%d,%d,%d,%d,%d,%d',
    parcel, piece.size, piece.first, piece.len, piece.attempts, piece.losses, piece.born) .. (piece.part or '')
end

-- The same history over other messages of the same home.
local function over(piece, first, len)
  return {
    parcel = piece.parcel, size = piece.size, first = first, len = len,
    attempts = piece.attempts, losses = piece.losses, born = piece.born,
    carried = piece.carried, at = piece.at, body = piece.body, part = piece.part,
  }
end

local function by_id(a, b) return a.first < b.first end

-- What waits in a line: a piece as text, and behind a bar the parcel of a short message, which so has no key of its own.
-- `carried` is its length, `body` the parcel. The second value is the piece without it.
local function read_entry(entry)
  local bar = string.find(entry, '|', 1, true)
  if not bar then return read_piece(entry), entry end
  local written = string.sub(entry, 1, bar - 1)
  local piece = read_piece(written)
  piece.body = string.sub(entry, bar + 1)
  piece.carried = #piece.body
  return piece, written
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

local function write_entry(piece)
  local written = write_piece(piece)
  return piece.body and written .. '|' .. piece.body or written
end
