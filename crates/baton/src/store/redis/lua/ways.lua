-- The way of single pushes of a session to a queue: what each of them would make of the same texts, and the box of the
-- queue. Ways are kept between two calls, not more than so many: they follow from such a text by itself, whoever asks and
-- whatever is stored, so nothing of them could be stale but what stands in the box (inbox.lua).
local ways, known_ways, MOST_WAYS = {}, 0, 1024

-- Lengths of a page of submits by their text: most numbers that come are one of these.
local lengths = {}

local function find_way(written)
  local submits, queue, bound = string.match(written, '^([^ ]+) ([^ ]+) (%d+)$')
  local fleet, session, page = string.match(submits, '^({[^}]*}):n:([^:]+):(%d+)$')
  local way = {
    fleet = fleet, queue = queue, session = session, page = page, submits = submits, counts = fleet .. ':k:' .. queue,
    inbox = fleet .. ':I:' .. queue .. ':',
    -- Beyond which the queue is counted exactly.
    bound = tonumber(bound), near = bound - MAX_INBOX * CARRIED,
  }
  if known_ways == MOST_WAYS then ways, boxes, known_ways = {}, {}, 0 end
  way.box = boxes[way.counts] or { open = false, count = -1 }
  boxes[way.counts] = way.box
  ways[written], known_ways = way, known_ways + 1
  if #lengths == 0 then
    for length = 1, SUBMIT_PAGE + 1 do lengths[length], lengths[text(length)] = length, length end
  end
  return way
end
