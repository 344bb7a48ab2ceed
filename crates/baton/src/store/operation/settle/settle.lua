#!lua flags=allow-oom
-- Purpose: takes reports of claimed messages. Each run is judged by its token, and its effects are kept in this step.
-- KEYS: 1 root
-- ARGV: 1 session, 2 settle number, 3 the number before this one,
--       then for each run: claim number, queue, first id, messages, outcome and its own:
--       D done · d done, has result (0|1), result, follow-ups, then five for each (as in submit)
--       r retry, ms, error · x dead, error · b back
-- Returns: OK, and unless it took the short way refused runs `queue,claim,first,messages;…` | STALE | TURN last | HELD ms
-- Idempotency: by number; the last answer is kept, and nothing else is answered again.
call = redis.call
name_keys(KEYS[1])
local id, settle_no = ARGV[1], tonumber(ARGV[2])
-- Most report that all of a claim is done.
if #ARGV == 8 and ARGV[8] == 'D' and call('HGET', key.session(id), 'settle_no') == ARGV[3]
  and settle_whole(id, ARGV[4], ARGV[5], ARGV[6], ARGV[7]) then
  call('HSET', key.session(id), 'settle_no', ARGV[2], 'settle', '')
  return 'OK'
end
begin(KEYS[1])
local session = visit(id, 'settle_no', 'settle', 'suspects', 'host', 'pid')
if not session then return { 'STALE' } end
local wait = held()
if wait then return wait end
local last = tonumber(session[2] or 0)
if settle_no ~= last + 1 then
  if settle_no == last and session[3] then return { 'OK', session[3] } end
  return { 'TURN', text(last) }
end
local suspects, node = tonumber(session[4] or 0), session[5] .. '/' .. session[6]

-- The claim of the last run stays open while runs name the same. Its pieces are in the order of ids; those before `next`
-- were passed by, and what is left of them is in `rest`. So runs in the order of ids take one pass over a claim.
local claim = {}
local function left_of_claim()
  local left = claim.rest
  for i = claim.next, #claim.pieces do left[#left + 1] = claim.pieces[i] end
  return left
end
local function close_claim()
  if not claim.changed then return end
  local left = left_of_claim()
  if #left == 0 then
    call('HDEL', key.claims(id), claim.place)
    if claim.carries then drop_carried(id, claim.place, claim.in_lists) end
  else
    for _, piece in ipairs(left) do
      if piece.list then piece.total = weigh_run(id, claim, piece) end
    end
    call('HSET', key.claims(id), claim.place, write_claim(claim.queue, left))
  end
end
local function open_claim(place)
  if claim.place == place then return end
  close_claim()
  claim = { place = place, next = 1, rest = {} }
  local written = call('HGET', key.claims(id), place)
  if not written then return end
  claim.queue, claim.pieces = read_claim(written)
  claim.carries, claim.in_lists = string.find(written, '[*+]') ~= nil, lists_of(claim.pieces)
  table.sort(claim.pieces, by_id)
end

-- Takes `len` messages from `first` on out of the open claim if it holds all of them; the pieces taken, or nothing.
local function take_out(first, len)
  local past, rest, pieces = first + len, claim.rest, claim.pieces
  local before = rest[#rest]
  if before and before.first + before.len > first then
    claim.pieces, claim.rest, claim.next = left_of_claim(), {}, 1
    rest, pieces = claim.rest, claim.pieces
  end
  local from = claim.next
  while pieces[from] and pieces[from].first + pieces[from].len <= first do
    rest[#rest + 1] = pieces[from]
    from = from + 1
  end
  claim.next = from
  local to, at = from, first
  while at < past and pieces[to] and pieces[to].first <= at do
    at = pieces[to].first + pieces[to].len
    to = to + 1
  end
  if at < past then return nil end
  local taken = {}
  for i = from, to - 1 do
    local piece = pieces[i]
    local begins, ends = math.max(piece.first, first), math.min(piece.first + piece.len, past)
    taken[#taken + 1] = over(piece, begins, ends - begins)
    if begins > piece.first then rest[#rest + 1] = over(piece, piece.first, begins - piece.first) end
  end
  -- The end of the last one may be left.
  local last = pieces[to - 1]
  claim.next = to
  if at > past then
    claim.next = to - 1
    pieces[to - 1] = over(last, past, at - past)
  end
  claim.changed = true
  return taken
end

-- Delays each message of a piece in a copy of its own, with why it failed. It came back alive, so its losses are
-- forgotten. Without a body there is nothing to copy, and it is buried.
local delays = {}
local function retry(queue, piece, due, reason)
  local line = delays[queue.name] or {}
  delays[queue.name] = line
  local has_own_key = piece.size == 0 and not piece.carried
  local copied = each_message(queue.name, piece, function(message, parcel, body, headers)
    local one = { parcel = message, size = 0, first = message, len = 1, attempts = piece.attempts + 1, losses = 0,
      born = piece.born }
    local failed, before = failed_again(headers, reason), #parcel
    if failed ~= headers then parcel = parcel_of(failed, body) end
    if not has_own_key then
      give_own(queue, one, parcel)
    elseif failed ~= headers then
      add(queue, 'bytes', #parcel - before)
      call('SET', key.own(queue.name, text(message)), parcel)
    end
    line[#line + 1], line[#line + 2] = text(due), padded(text(message)) .. '|' .. write_entry(one)
  end)
  if not copied then
    piece.attempts = piece.attempts + 1
    return bury(queue, piece, node, MISSING_BODY)
  end
  if not has_own_key then release(queue, piece) end
  add(queue, 'in_flight', -piece.len)
  add(queue, 'delayed', piece.len)
  queue.wakes = 1
end
local function close_delays()
  for name, line in pairs(delays) do
    for from = 1, #line, 1000 do call('ZADD', key.delayed(name), unpack(line, from, math.min(from + 999, #line))) end
  end
end

local returning = {}
local function apply(queue, piece, outcome, detail, reason)
  if outcome == 'D' or outcome == 'd' then
    add(queue, 'in_flight', -piece.len)
    add(queue, 'done', piece.len)
    add_sum(queue, 'done_sum', piece.first, piece.len)
    release(queue, piece)
  elseif outcome == 'r' then
    retry(queue, piece, now + tonumber(detail), reason)
  elseif outcome == 'x' then
    piece.attempts = piece.attempts + 1
    bury(queue, piece, node, detail)
  else
    returning[queue.name] = returning[queue.name] or {}
    table.insert(returning[queue.name], piece)
  end
end

local function keep_result(name, message, result)
  expire_entries(key.results, key.result_ends)
  local entry, expires = name .. ' ' .. padded(message), text(now + RESULT_TTL_MS)
  call('HSET', key.results, entry, expires .. ':' .. result)
  call('ZADD', key.result_ends, expires, entry)
end

local function follow_up(name, count, lot_key, digest, parcel)
  local queue = open_queue(name)
  if lot_key ~= '' then expire_entries(key.keys, key.key_ends) end
  if seen_before(lot_key, digest, name) then return end
  keep_key(lot_key, digest, queue, deposit(id, queue, tonumber(count), parcel, #parcel))
end

local refused, at = {}, 4
while at <= #ARGV do
  local claim_no, name, first, len, outcome = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local detail = at + 5
  at = detail + (outcome == 'd' and 3 + 5 * tonumber(ARGV[detail + 2]) or outcome == 'r' and 2 or outcome == 'x' and 1 or 0)
  open_claim(claim_no .. ' ' .. name)
  local taken = claim.pieces and take_out(tonumber(first), tonumber(len))
  if taken then
    local is_done = outcome == 'D' or outcome == 'd'
    if not is_done then
      load_carried(id, claim, taken)
      taken = spread(id, claim, taken)
    end
    for _, piece in ipairs(taken) do
      if piece.list then piece.carried = weigh_run(id, claim, piece) end
      if piece.losses >= SUSPECT_LOSSES then
        -- Those who hold a suspect pass others by: one may be waiting for this session.
        suspects = suspects - piece.len
        open_queue(name).wakes = 1
      end
      apply(open_queue(name), piece, outcome, ARGV[detail], ARGV[detail + 1])
    end
    if outcome == 'd' then
      if ARGV[detail] == '1' then keep_result(name, first, ARGV[detail + 1]) end
      for lot = detail + 3, at - 1, 5 do
        follow_up(ARGV[lot], ARGV[lot + 1], ARGV[lot + 2], ARGV[lot + 3], ARGV[lot + 4])
      end
    end
  else
    refused[#refused + 1] = name .. ',' .. claim_no .. ',' .. first .. ',' .. len
    local queue = known_queue(name)
    if queue then add(queue, 'stale_settles', tonumber(len)) end
  end
end
close_claim()
close_delays()
for name, pieces in pairs(returning) do to_front(known_queue(name), pieces) end
close_queues()
local answer = table.concat(refused, ';')
call('HSET', key.session(id), 'settle_no', ARGV[2], 'settle', answer, 'suspects', text(suspects))
return { 'OK', answer }
