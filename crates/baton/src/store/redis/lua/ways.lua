-- The way of single pushes of a session to a queue: what each of them would make of the same text. What is kept here
-- between two calls is only what follows from that text, and not of more than so many.
local ways, known_ways, MOST_WAYS = {}, 0, 256

local function find_way(written)
  local submits, queue, bound = string.match(written, '^([^ ]+) ([^ ]+) (%d+)$')
  local fleet = fleet_of(submits)
  local way = {
    fleet = fleet, queue = queue, submits = submits, counts = fleet .. ':k:' .. queue, inbox = fleet .. ':i:' .. queue,
    -- Beyond which the queue is counted exactly.
    bound = tonumber(bound), near = bound - MAX_INBOX * CARRIED,
  }
  if known_ways == MOST_WAYS then ways, known_ways = {}, 0 end
  ways[written], known_ways = way, known_ways + 1
  return way
end

-- Places of answers as text.
local places = {}
local function find_place(place)
  places[place] = text(place)
  return places[place]
end
