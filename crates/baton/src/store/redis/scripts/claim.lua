#!lua flags=allow-oom
-- Purpose: hands messages of the first queue that has any to a session: a suspect, then what is due, then ready.
-- KEYS: 1 root
-- ARGV: 1 session, 2 claim number, 3 most messages, 4 most body bytes, then the queues
-- Returns: OK queue {three for each piece} | EMPTY ms until the next is due ('' none) | STALE | TURN last
--          | SPENT claim_no | HELD ms
--          The three are the piece, then its parcel and nothing, or the head of it and where the rest lies
--          as `from to key`.
-- Idempotency: by number; a repeat gives what is still in flight under it. An empty claim does not use its number.
local WINDOW = 64
local CHUNK = 128
local MAX_PIECES = 1024
local id, claim_no, n, budget = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local session, meta = touch(id, 'suspects', 'claim_high', 'claim_holes')
if not session then
  -- The token that woke it is for others.
  for i = 5, #ARGV do
    if call('EXISTS', key.ready(ARGV[i])) == 1 then wake(ARGV[i]) end
  end
  return { 'STALE' }
end
local wait = held(meta)
if wait then return wait end

local given = {}
local function give(written, found)
  local at = #given
  given[at + 1] = written
  if found.to - found.from < INLINE then
    given[at + 2], given[at + 3] = fetch(found), ''
  else
    given[at + 2], given[at + 3] = found.head, text(found.from) .. ' ' .. text(found.to) .. ' ' .. found.at
  end
end

local high, holes = tonumber(session[3] or 0), {}
-- Nothing was ever held under a number above the highest used.
local known = claim_no <= high and call('HGET', key.claims(id), ARGV[2])
if known then
  local name, pieces = read_claim(known)
  for _, piece in ipairs(pieces) do give(write_piece(piece), find(name, piece, math.huge)) end
  return { 'OK', name, given }
end

for hole in string.gmatch(session[4] or '', '%d+') do holes[#holes + 1] = tonumber(hole) end
local function is_hole()
  for at, hole in ipairs(holes) do
    if hole == claim_no then return at end
  end
  return nil
end
if claim_no >= (holes[1] or high + 1) + WINDOW then return { 'TURN', text(high) } end
if claim_no <= high and not is_hole() then return { 'SPENT', ARGV[2] } end

local pieces = {}

local function has_room()
  return n > 0 and #pieces < MAX_PIECES
end

-- How many pieces are worth a look at once.
local function most_pieces()
  return math.min(n, CHUNK, MAX_PIECES - #pieces)
end

-- Takes as much of a piece as fits, at least one message if the hand is empty; how many. `written` is the piece as
-- text, so that one taken whole is not written anew.
local function take(name, piece, written)
  local found = find(name, piece, budget)
  if not found then
    if #pieces > 0 then return 0 end
    found = find(name, over(piece, piece.first, 1), math.huge)
  end
  local len = found.count
  n = n - len
  budget = math.max(budget - found.bytes, 0)
  if len < piece.len then written = write_piece(over(piece, piece.first, len)) end
  pieces[#pieces + 1] = written
  give(written, found)
  return len
end

-- The counters of the books tell which lines are worth a look: they change in the same step as the lines.

-- A suspect leaves its line only as a whole, and is one message.
local function take_suspect(queue)
  if queue.ready == 0 then return 0 end
  local front = call('LINDEX', key.suspects(queue.name), 0)
  if not front then return 0 end
  local taken = take(queue.name, read_piece(front), front)
  call('LPOP', key.suspects(queue.name))
  add(queue, 'ready', -taken)
  add(queue, 'in_flight', taken)
  return taken
end

-- What is due, by (due, id); false if the hand is full.
local function take_due(queue)
  local line = key.delayed(queue.name)
  while has_room() do
    if queue.delayed == 0 then return true end
    local due = call('ZRANGEBYSCORE', line, '-inf', text(now), 'LIMIT', 0, most_pieces())
    if #due == 0 then return true end
    for _, member in ipairs(due) do
      local written = string.sub(member, 18)
      if take(queue.name, read_piece(written), written) == 0 then return false end
      call('ZREM', line, member)
      add(queue, 'delayed', -1)
      add(queue, 'in_flight', 1)
    end
  end
  return false
end

-- What is ready, from the front. The pieces used up leave the line together; one cut in two leaves its rest.
local function take_ready(queue)
  local line = key.ready(queue.name)
  while has_room() and queue.ready > 0 do
    local front = call('LRANGE', line, 0, most_pieces() - 1)
    local used, rest, ends = 0, nil, #front == 0
    for _, written in ipairs(front) do
      if n == 0 then break end
      local piece = read_piece(written)
      local wanted = math.min(piece.len, n)
      local taken
      if wanted == piece.len then
        taken = take(queue.name, piece, written)
      else
        local part = over(piece, piece.first, wanted)
        taken = take(queue.name, part, write_piece(part))
      end
      add(queue, 'ready', -taken)
      add(queue, 'in_flight', taken)
      ends = taken < wanted
      if taken < piece.len then
        rest = taken > 0 and write_piece(over(piece, piece.first + taken, piece.len - taken)) or nil
        break
      end
      used = used + 1
    end
    if used > 0 then call('LTRIM', line, used, -1) end
    if rest then call('LSET', line, 0, rest) end
    if ends then return end
  end
end

local next_due
for i = 5, #ARGV do
  local queue = known_queue(ARGV[i])
  if queue and queue.paused == 0 then
    local name = queue.name
    local suspects = tonumber(session[2] or 0)
    local suspect = suspects == 0 and take_suspect(queue) or 0
    if take_due(queue) then take_ready(queue) end
    if #pieces > 0 then
      if claim_no > high then
        for hole = high + 1, claim_no - 1 do holes[#holes + 1] = hole end
        high = claim_no
      else
        table.remove(holes, is_hole())
      end
      for at, hole in ipairs(holes) do holes[at] = text(hole) end
      call('HSET', key.claims(id), ARGV[2], name .. '|' .. table.concat(pieces, ';'))
      local fields = { 'claim_high', text(high) }
      local left = table.concat(holes, ',')
      if left ~= (session[4] or '') then fields[3], fields[4] = 'claim_holes', left end
      if suspect > 0 then
        fields[#fields + 1] = 'suspects'
        fields[#fields + 1] = text(suspect)
      end
      call('HSET', key.session(id), unpack(fields))
      queue.wakes = queue.ready > 0 and call('EXISTS', key.ready(name)) == 1
      close_queues()
      -- The token that woke this session may have been meant for a queue further down, which others wait for too.
      for later = i + 1, #ARGV do
        local other = call('EXISTS', key.ready(ARGV[later])) == 1 and known_queue(ARGV[later])
        if other and other.paused == 0 then wake(other.name) end
      end
      return { 'OK', name, given }
    end
    local first = queue.delayed > 0 and call('ZRANGE', key.delayed(name), 0, 0, 'WITHSCORES') or {}
    if first[2] then next_due = math.min(next_due or math.huge, math.max(tonumber(first[2]) - now, 0)) end
  end
end
return { 'EMPTY', next_due and text(next_due) or '' }
