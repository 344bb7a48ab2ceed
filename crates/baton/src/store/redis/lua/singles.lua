-- Singles: messages that were pushed one by one, are fresh and carry their parcels, in the hands of a session.
-- Those of a claim that follow each other are a run, a word of the claim's text that stays as it is while the claim lives:
-- `+first,len,each`, the bytes of each parcel, empty if they differ. Each lies by itself among what the session's messages
-- carry, as it lay in its line, until it is settled or goes back; beside them how many of the claim are left. If that is
-- missing, so are they: none of them has a body.
local function read_run(word)
  local first, len, each = string.match(word, '^%+(%d+),(%d+),(%d*)$')
  if not first then error({ err = 'DAMAGED unreadable run ' .. string.sub(word, 1, 80) }) end
  return { is_run = true, first = tonumber(first), len = tonumber(len), each = tonumber(each) }
end

local function write_run(run)
  return string.format('+%d,%d,', run.first, run.len) .. (run.each and text(run.each) or '')
end

-- Where one of a claim lies, and where their number.
local function single_at(message, place)
  return text(message) .. ' ' .. place
end

local function left_at(place)
  return '# ' .. place
end

-- How many singles of a claim are left; nothing if they are missing.
local function singles_left(id, place)
  return tonumber(call('HGET', key.carried(id), left_at(place)) or nil)
end

-- Where `len` messages from `first` on lie.
local function places_of(place, first, len)
  local fields = {}
  for nth = 1, len do fields[nth] = single_at(first + nth - 1, place) end
  return fields
end

-- Their entries, false for those that are not there.
local function read_singles(id, place, first, len)
  return call('HMGET', key.carried(id), unpack(places_of(place, first, len)))
end

-- Removes those at these places, which are there; how many of the claim are left.
local function remove_singles(id, place, fields)
  for from = 1, #fields, 1000 do
    call('HDEL', key.carried(id), unpack(fields, from, math.min(from + 999, #fields)))
  end
  local left = call('HINCRBY', key.carried(id), left_at(place), -#fields)
  if left == 0 then call('HDEL', key.carried(id), left_at(place)) end
  return left
end

-- Adds the messages of a run that are left to spans: with what they carry, or without bodies if all are missing.
local function add_run(spans, id, place, run, is_missing)
  if is_missing then
    for message = run.first, run.first + run.len - 1 do
      spans[#spans + 1] = { parcel = message, size = 1, first = message, len = 1, attempts = 0, crashes = 0, born = 0 }
    end
    return
  end
  for _, entry in ipairs(read_singles(id, place, run.first, run.len)) do
    if entry then
      local span = read_entry(entry)
      span.single, spans[#spans + 1] = true, span
    end
  end
end
