#!lua flags=allow-oom
-- Purpose: hands messages of a queue to a session: a suspect, then what is due, then ready. A claim that could have taken
--          more enters the session among those who wait for the queue; one that leaves something wakes another. What has
--          no body is buried, and the claim goes on with the next.
-- KEYS: 1 root
-- ARGV: 1 session, 2 queue, 3 claim number, 4 most messages, 5 most body bytes
-- Returns: OK queue rest {three for each piece} | STALE | TURN last | SPENT claim_no | HELD ms
--          The rest is `more`, or the ms until the next is due ('' none) if nothing is left. The three are the piece,
--          then its parcel and nothing, or the head of it and where the rest lies as `from to key`.
-- Idempotency: by number within (session, queue); a repeat gives what is still in flight under it. An empty claim does
--              not use its number.
local CHUNK = 128
local id, name, claim_no = ARGV[1], ARGV[2], tonumber(ARGV[3])
local n, budget = tonumber(ARGV[4]), tonumber(ARGV[5])
-- The numbers of this session and queue: `highest used|numbers below it that were not|w if it may be among the waiters`.
local numbers = 'c:' .. name
local session, meta = touch(id, 'suspects', numbers)
if not session then return { 'STALE' } end
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

-- Moves messages without a body, counted as in flight, to the error registry.
local buried = 0
local function bury_missing(queue, piece)
  buried = buried + piece.len
  local at = call('HMGET', key.session(id), 'host', 'pid')
  bury(queue, piece, at[1] .. '/' .. at[2], MISSING_BODY)
end

local high, holes, waits = 0, {}, ''
if session[3] then
  local used, unused, flag = string.match(session[3], '^(%d+)|([%d,]*)|(w?)$')
  high, waits = tonumber(used), flag
  for hole in string.gmatch(unused, '%d+') do holes[#holes + 1] = tonumber(hole) end
end
local place = ARGV[3] .. ' ' .. name
-- Nothing was ever held under a number above the highest used.
local known = claim_no <= high and call('HGET', key.claims(id), place)
if known then
  local _, pieces = read_claim(known)
  local left, suspects = {}, tonumber(session[2] or 0)
  for _, piece in ipairs(pieces) do
    local found = find(name, piece, math.huge)
    if found then
      left[#left + 1] = piece
      give(write_piece(piece), found)
    else
      if piece.losses >= SUSPECT_LOSSES then suspects = suspects - piece.len end
      bury_missing(known_queue(name), piece)
    end
  end
  if buried > 0 then
    close_queues()
    call('HSET', key.session(id), 'suspects', text(suspects))
    if #left > 0 then
      call('HSET', key.claims(id), place, write_claim(name, left))
    else
      call('HDEL', key.claims(id), place)
    end
  end
  return { 'OK', name, 'more', given }
end

local function is_hole()
  for at, hole in ipairs(holes) do
    if hole == claim_no then return at end
  end
  return nil
end
if claim_no >= (holes[1] or high + 1) + CLAIM_WINDOW then return { 'TURN', text(high) } end
if claim_no <= high and not is_hole() then return { 'SPENT', ARGV[3] } end

local pieces, stopped = {}, false

local function has_room()
  return n > 0 and #pieces < MAX_PIECES and buried < MOST_BURIED
end

-- How many pieces are worth a look at once.
local function most_pieces()
  return math.min(n, CHUNK, MAX_PIECES - #pieces)
end

-- Takes as much of a piece as fits, at least one message if the hand is empty; how many, or nothing if its bodies are
-- missing. `written` is the piece as text, so that one taken whole is not written anew.
local function take(piece, written)
  local found = find(name, piece, budget)
  if found == nil then
    if #pieces > 0 then
      stopped = true
      return 0
    end
    found = find(name, over(piece, piece.first, 1), math.huge)
  end
  if not found then return nil end
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
  while has_room() and queue.ready > 0 do
    local front = call('LINDEX', key.suspects(queue.name), 0)
    if not front then return 0 end
    local piece = read_piece(front)
    local taken = take(piece, front)
    call('LPOP', key.suspects(queue.name))
    add(queue, 'ready', -piece.len)
    add(queue, 'in_flight', piece.len)
    if taken then return taken end
    bury_missing(queue, piece)
  end
  return 0
end

-- What is due, by (due, id); false if the hand is full.
local function take_due(queue)
  local line = key.delayed(queue.name)
  while has_room() do
    if queue.delayed == 0 then return true end
    local due = call('ZRANGEBYSCORE', line, '-inf', text(now), 'LIMIT', 0, most_pieces())
    if #due == 0 then return true end
    for _, member in ipairs(due) do
      if not has_room() then return false end
      local written = string.sub(member, 18)
      local piece = read_piece(written)
      local taken = take(piece, written)
      if taken == 0 then return false end
      call('ZREM', line, member)
      add(queue, 'delayed', -1)
      add(queue, 'in_flight', 1)
      if not taken then bury_missing(queue, piece) end
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
      if not has_room() then break end
      local piece = read_piece(written)
      local wanted = math.min(piece.len, n)
      local taken
      if wanted == piece.len then
        taken = take(piece, written)
      else
        local part = over(piece, piece.first, wanted)
        taken = take(part, write_piece(part))
      end
      local gone = taken or math.min(wanted, MOST_BURIED - buried)
      add(queue, 'ready', -gone)
      add(queue, 'in_flight', gone)
      if taken then
        ends = taken < wanted
        stopped = stopped or ends
      else
        bury_missing(queue, over(piece, piece.first, gone))
      end
      if gone < piece.len then
        rest = gone > 0 and write_piece(over(piece, piece.first + gone, piece.len - gone)) or nil
        break
      end
      used = used + 1
    end
    if used > 0 then call('LTRIM', line, used, -1) end
    if rest then call('LSET', line, 0, rest) end
    if ends then return end
  end
end

local queue, suspect = known_queue(name), 0
if queue and queue.paused == 0 then
  if tonumber(session[2] or 0) == 0 then suspect = take_suspect(queue) end
  if take_due(queue) then take_ready(queue) end
else
  queue = nil
end
local more = queue and (stopped or not has_room())
local first = queue and queue.delayed > 0 and call('ZRANGE', key.delayed(name), 0, 0, 'WITHSCORES') or {}
local next_due = tonumber(first[2])
local now_waits = more and '' or 'w'
if #pieces > 0 then
  if claim_no > high then
    for hole = high + 1, claim_no - 1 do holes[#holes + 1] = hole end
    high = claim_no
  else
    table.remove(holes, is_hole())
  end
  call('HSET', key.claims(id), place, name .. '|' .. table.concat(pieces, ';'))
  -- Something is left for others, or will be due before anybody looks again while this session may be busy.
  queue.wakes = queue.ready > 0 and (call('EXISTS', key.ready(name)) == 1 or call('EXISTS', key.suspects(name)) == 1)
    or next_due ~= nil and next_due <= now + (more and SOON_MS or 0)
end
if #pieces > 0 or now_waits ~= waits then
  for at, hole in ipairs(holes) do holes[at] = text(hole) end
  local written = text(high) .. '|' .. table.concat(holes, ',') .. '|' .. now_waits
  if suspect > 0 then
    call('HSET', key.session(id), numbers, written, 'suspects', text(suspect))
  else
    call('HSET', key.session(id), numbers, written)
  end
end
if #pieces > 0 or buried > 0 then close_queues() end
if not more then
  call('ZADD', key.waiters(name), 'NX', text(now), id)
elseif waits == 'w' then
  call('ZREM', key.waiters(name), id)
end
local rest = more and 'more' or next_due and text(math.max(next_due - now, 0)) or ''
return { 'OK', name, rest, given }
