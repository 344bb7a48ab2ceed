#!lua flags=allow-oom
-- Purpose: takes reports of claimed messages. Each run is judged by its token, and its effects are kept in this step.
-- KEYS: 1 root
-- ARGV: 1 session, 2 settle number, 3 the number before this one, 4 bytes that all results may take, and calls that have ended,
--       then for each run: claim number, queue, first id, messages, outcome and its own:
--       D done · d done, bytes that all results may take ('' without one), result, follow-ups, then five for each (as in
--       submit, staged parcels too; `1j` for the messages of one that joins the call)
--       r retry, ms, error · x dead, error · b back
-- Returns: OK, and unless it took the short way refused runs `queue,claim,first,messages;…` | STALE | TURN last | HELD ms
-- Idempotency: by number; the last answer is kept, and nothing else is answered again.
call = redis.call
name_keys(KEYS[1])
local id, settle_no = ARGV[1], tonumber(ARGV[2])
-- Most report that messages were done that came singly; more at once than a run has did not.
if #ARGV == 9 and ARGV[9] == 'D' and tonumber(ARGV[8]) <= CHUNK and call('HGET', key.session(id), 'settle_no') == ARGV[3]
  and settle_singles(id, ARGV[5], ARGV[6], ARGV[7], ARGV[8]) then
  call('HSET', key.session(id), 'settle_no', ARGV[2], 'settle', '')
  return 'OK'
end
begin(KEYS[1])
local session = visit(id, 'settle_no', 'settle', 'suspects', 'host', 'pid')
local wait = held()

-- The place behind the run whose own arguments begin at `detail`.
local function past_run(outcome, detail)
  if outcome == 'd' then return detail + 3 + 5 * tonumber(ARGV[detail + 2]) end
  return detail + (outcome == 'r' and 2 or outcome == 'x' and 1 or 0)
end

if not session then
  -- A fleet under removal must not get a queue back.
  local at = call('HEXISTS', key.meta, 'destroying') == 0 and not wait and 5 or #ARGV + 1
  while at <= #ARGV do
    local queue = known_queue(ARGV[at + 1])
    if queue then add(queue, 'stale_settles', tonumber(ARGV[at + 3])) end
    at = past_run(ARGV[at + 4], at + 5)
  end
  close_queues()
  return { 'STALE' }
end
if wait then return wait end
local last = tonumber(session[2] or 0)
if settle_no ~= last + 1 then
  if settle_no == last and session[3] then return { 'OK', session[3] } end
  return { 'TURN', text(last) }
end
local suspects, node = tonumber(session[4] or 0), session[5] .. '/' .. session[6]

-- Arguments of more than a few runs.
local MANY_ARGUMENTS = 40

-- The claim of the last run stays open while runs name the same. Its spans are in the order of ids; those before `next`
-- were passed by, and what is left of them is in `rest`. So runs in the order of ids take one pass over a claim.
local claim = {}
local function left_of_claim()
  local left = claim.rest
  for i = claim.next, #claim.spans do left[#left + 1] = claim.spans[i] end
  return left
end
local function close_claim()
  if claim.gone and #claim.gone > 0 and remove_singles(id, claim.place, claim.gone) == 0 then
    claim.runs, claim.changed = {}, true
  end
  if not claim.changed then return end
  local left = left_of_claim()
  if #left + #claim.runs == 0 then
    call('HDEL', key.claims(id), claim.place)
    if claim.carries then call('HDEL', key.carried(id), claim.place) end
  else
    call('HSET', key.claims(id), claim.place, write_claim(claim.queue, left, claim.runs))
  end
end
local function open_claim(place)
  if claim.place == place then return end
  close_claim()
  claim = { place = place, next = 1, rest = {}, singles = {}, gone = {} }
  local written = call('HGET', key.claims(id), place)
  if not written then return end
  claim.queue, claim.spans, claim.runs = skim_claim(written)
  claim.carries = string.find(written, '*', 1, true) ~= nil
  table.sort(claim.spans, by_id)
  if #claim.runs == 0 then return end
  table.sort(claim.runs, by_id)
  if not singles_left(id, place) then
    -- They are missing: spans like all others, without bodies.
    for _, run in ipairs(claim.runs) do add_run(claim.spans, id, place, run, true) end
    table.sort(claim.spans, by_id)
    claim.runs, claim.changed = {}, true
  end
end

-- Passes by the spans of the open claim that end before `first`.
local function pass_by(first)
  local before = claim.rest[#claim.rest]
  if before and before.first + before.len > first then
    claim.spans, claim.rest, claim.next = left_of_claim(), {}, 1
  end
  local rest, spans, next = claim.rest, claim.spans, claim.next
  while spans[next] and spans[next].first + spans[next].len <= first do
    rest[#rest + 1] = spans[next]
    next = next + 1
  end
  claim.next = next
end

-- The place behind the spans of the open claim that are messages `first` up to `past`, looked for from a place on; nothing
-- if it does not hold all of them.
local function behind(from, first, past)
  local spans, at = claim.spans, first
  while spans[from] and spans[from].first + spans[from].len <= first do from = from + 1 end
  while at < past and spans[from] and spans[from].first <= at do
    at = spans[from].first + spans[from].len
    from = from + 1
  end
  if at < past then return nil end
  -- The end of the last one may be left.
  return at > past and from - 1 or from
end

-- Takes `len` messages from `first` on out of the open claim, which holds all of them; the spans taken.
local function take_out(first, len)
  pass_by(first)
  local past, rest, spans, from = first + len, claim.rest, claim.spans, claim.next
  local to, at = from, first
  while at < past do
    at = spans[to].first + spans[to].len
    to = to + 1
  end
  local taken = {}
  for i = from, to - 1 do
    local span = spans[i]
    local begins, ends = math.max(span.first, first), math.min(span.first + span.len, past)
    taken[#taken + 1] = span.is_skimmed and filled(span) or over(span, begins, ends - begins)
    if begins > span.first then rest[#rest + 1] = over(span, span.first, begins - span.first) end
  end
  -- The end of the last one may be left.
  local last = spans[to - 1]
  claim.next = to
  if at > past then
    claim.next = to - 1
    spans[to - 1] = over(last, past, at - past)
  end
  claim.changed = true
  return taken
end

-- Takes singles of the open claim, which are there; the spans taken, or one for all of them if they are done.
local function take_singles(run, first, len, is_done)
  local taken, bytes = {}, 0
  for message = first, first + len - 1 do
    local entry = claim.singles[message]
    if not is_done then
      -- As read_entry() does, without reading again what is known.
      local born, past = string.match(entry, '^%d+,1,(%d+)|()')
      local body = born and string.sub(entry, past)
      taken[#taken + 1] = born and { parcel = message, size = 1, first = message, len = 1, attempts = 0, crashes = 0,
        born = tonumber(born), body = body, carried = #body } or read_entry(entry)
    elseif not run.each then
      bytes = bytes + #entry - string.find(entry, '|', 1, true)
    end
    claim.singles[message], claim.gone[#claim.gone + 1] = false, single_at(message, claim.place)
  end
  -- With others beside them its words are in the order of ids from now on.
  claim.changed = claim.changed or #claim.spans > 0
  if run.each then bytes = run.each * len end
  if is_done then return { { first = first, len = len, attempts = 0, crashes = 0, carried = bytes } } end
  return taken
end

-- Whether the open claim holds these singles of a run. Where many are reported, all of a run are read at once.
local function holds_singles(run, first, len)
  if claim.singles[first] == nil or claim.singles[first + len - 1] == nil then
    local from, count = first, len
    if #ARGV > MANY_ARGUMENTS then from, count = run.first, run.len end
    for nth, entry in ipairs(read_singles(id, claim.place, from, count)) do
      local message = from + nth - 1
      if claim.singles[message] == nil then claim.singles[message] = entry end
    end
  end
  for message = first, first + len - 1 do
    if claim.singles[message] == nil then
      claim.singles[message] = read_singles(id, claim.place, message, 1)[1]
    end
    if not claim.singles[message] then return false end
  end
  return true
end

-- The place of the first run of the open claim that ends behind a message.
local function run_beyond(message)
  local runs, low, high = claim.runs, 1, #claim.runs + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if runs[middle].first + runs[middle].len > message then high = middle else low = middle + 1 end
  end
  return low
end

-- Takes `len` messages from `first` on out of the open claim, singles and others, if it holds all of them: nothing if not.
-- Runs and spans are passed over once.
local function take(first, len, is_done)
  local parts, at, past, nth = {}, first, first + len, run_beyond(first)
  pass_by(first)
  local place = claim.next
  while at < past do
    local run, ends = claim.runs[nth], past
    if run and run.first <= at then
      ends, nth = math.min(past, run.first + run.len), nth + 1
      if not holds_singles(run, at, ends - at) then return nil end
    else
      if run then ends = math.min(past, run.first) end
      run, place = nil, behind(place, at, ends)
      if not place then return nil end
    end
    parts[#parts + 1], at = { run = run, first = at, len = ends - at }, ends
  end
  local taken = {}
  for _, part in ipairs(parts) do
    local some = part.run and take_singles(part.run, part.first, part.len, is_done) or take_out(part.first, part.len)
    for _, span in ipairs(some) do taken[#taken + 1] = span end
  end
  return taken
end

-- Delays each message of a span in a copy of its own, with why it failed. It came back alive, so its crashes are
-- forgotten. Without a body there is nothing to copy, and it is buried: then it is false.
local delays = {}

-- Short messages that fail alike have the same headers: what comes before the body is made once, by reason, former headers
-- and length.
local heads = {}
local function failed_head(headers, reason, body)
  local of_reason = heads[reason] or {}
  heads[reason] = of_reason
  local made = of_reason[headers]
  if not made then
    made = { headers = failed_again(headers, reason) }
    of_reason[headers] = made
  end
  if made.headers == headers then return nil end
  local head = made[#body] or head_of(made.headers, body)
  made[#body] = head
  return head
end

-- The same for one that carries its parcel and will go on to do so; false if it will not.
local function retry_carried(queue, span, due, reason, line)
  local headers, body = open_parcel(span.body)
  local head = failed_head(headers, reason, body) or string.sub(span.body, 1, PARCEL_TABLE + 4 + #headers)
  local bytes, message = #head + #body, span.first
  if bytes > CARRIED then return false end
  line[#line + 1], line[#line + 2] = text(due), string.format('%016d|%d,0,%d,1,%d,0,%d%s|', message, message, message,
    span.attempts + 1, span.born, span.role or '') .. head .. body
  add(queue, 'bytes', bytes - span.carried)
  add(queue, 'in_flight', -1)
  add(queue, 'delayed', 1)
  queue.wakes = 1
  return true
end

local function retry(queue, span, due, reason)
  local line = delays[queue.name] or {}
  delays[queue.name] = line
  if span.body and retry_carried(queue, span, due, reason, line) then return true end
  local has_own_key = span.size == 0 and not span.carried
  local copied = each_message(queue.name, span, function(message, head, body, headers)
    local one = { parcel = message, size = 0, first = message, len = 1, attempts = span.attempts + 1, crashes = 0,
      born = span.born, role = span.role }
    local failed, before = failed_again(headers, reason), #head
    if failed ~= headers then head = head_of(failed, body) end
    if not has_own_key then
      give_own(queue, one, head, body)
    elseif failed ~= headers then
      add(queue, 'bytes', #head - before)
      write_own(queue.name, message, head, body)
    end
    line[#line + 1], line[#line + 2] = text(due), padded(text(message)) .. '|' .. write_entry(one)
  end)
  if not copied then
    span.attempts = span.attempts + 1
    bury(queue, span, node, MISSING_BODY)
    return false
  end
  if not has_own_key then release(queue, span) end
  add(queue, 'in_flight', -span.len)
  add(queue, 'delayed', span.len)
  queue.wakes = 1
  return true
end
local function close_delays()
  for name, line in pairs(delays) do
    for from = 1, #line, 1000 do call('ZADD', key.delayed(name), unpack(line, from, math.min(from + 999, #line))) end
  end
end

local returning = {}
local function apply(queue, span, outcome, detail, reason)
  if outcome == 'D' or outcome == 'd' then
    add(queue, 'in_flight', -span.len)
    add(queue, 'done', span.len)
    add_sum(queue, 'done_sum', span.first, span.len)
    release(queue, span)
  elseif outcome ~= 'x' and calls.is_withheld(queue.name, span) then
    add(queue, 'in_flight', -1)
    calls.cancel_message(queue, span)
  elseif outcome == 'r' then
    local due = now + tonumber(detail)
    if retry(queue, span, due, reason) and span.role then calls.returned(queue.name, span, due) end
  elseif outcome == 'x' then
    span.attempts = span.attempts + 1
    bury(queue, span, node, detail)
  else
    if span.role then calls.returned(queue.name, span) end
    returning[queue.name] = returning[queue.name] or {}
    table.insert(returning[queue.name], span)
  end
end

-- The keys of follow-ups, written together at the end: as records, by their ends, and which they are.
local key_records, key_ends, is_brought = {}, {}, {}
local function follow_up(joins, name, count, submission_key, proof, parcel, bytes)
  local queue = open_queue(name)
  if is_brought[submission_key] or seen_before(submission_key, proof, name) then
    if is_staged(parcel) then call('UNLINK', key.staged(id, parcel)) end
    return
  end
  local role = read_calling(count)
  if not joins then role = nil end
  local first, at = deposit(id, queue, tonumber(count) or 1, parcel, bytes, role), #key_records
  if role then calls.join(joins, name, first) end
  if submission_key == '' then return end
  local record, expires = key_record(proof, queue, first)
  is_brought[submission_key] = true
  key_records[at + 1], key_records[at + 2] = submission_key, record
  key_ends[at + 1], key_ends[at + 2] = expires, submission_key
end
local function close_keys()
  for from = 1, #key_records, 1000 do
    local past = math.min(from + 999, #key_records)
    call('HSET', key.keys, unpack(key_records, from, past))
    call('ZADD', key.key_ends, unpack(key_ends, from, past))
  end
end

-- The bytes of all follow-ups, by the places of their submissions: what is staged is looked at before anything is written.
local weights, keyed, at = {}, 0, 5
while at <= #ARGV do
  local outcome, detail = ARGV[at + 4], at + 5
  at = past_run(outcome, detail)
  if outcome == 'd' then
    for submission = detail + 3, at - 1, 5 do
      weights[submission] = weigh(id, ARGV[submission + 4])
      if ARGV[submission + 2] ~= '' then keyed = keyed + 1 end
    end
  end
end
make_room(keyed)

local refused, of_calls, max_bytes = {}, 0, tonumber(ARGV[4])
at = 5
while at <= #ARGV do
  local claim_no, name, first, len, outcome = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local detail = at + 5
  at = past_run(outcome, detail)
  open_claim(claim_no .. ' ' .. name)
  local is_done = outcome == 'D' or outcome == 'd'
  local taken = claim.spans and take(tonumber(first), tonumber(len), is_done)
  if taken then
    if not is_done then load_carried(id, claim, taken) end
    for _, span in ipairs(taken) do
      if span.crashes >= SUSPECT_CRASHES then
        -- Those who hold a suspect pass others by: one may be waiting for this session.
        suspects = suspects - span.len
        known_queue(name).wakes = 1
      end
      if span.role then of_calls = of_calls + 1 end
      apply(known_queue(name), span, outcome, ARGV[detail], ARGV[detail + 1])
    end
    if outcome == 'd' then
      if ARGV[detail] ~= '' then keep_result(name, first, ARGV[detail + 1], max_bytes) end
      for submission = detail + 3, at - 1, 5 do
        local joins = taken[1].role and read_calling(ARGV[submission + 1]) and calls.of(name, taken[1])
        if joins and call('EXISTS', key.call(joins)) == 0 then joins = nil end
        follow_up(joins, ARGV[submission], ARGV[submission + 1], ARGV[submission + 2], ARGV[submission + 3], ARGV[submission + 4], weights[submission])
      end
    end
    if is_done then
      -- Those that joined count before it leaves.
      local result = outcome == 'd' and ARGV[detail] ~= '' and ARGV[detail + 1] or nil
      for _, span in ipairs(taken) do
        if span.role then calls.ended(name, span, 'D', result) end
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
close_keys()
for name, spans in pairs(returning) do to_front(known_queue(name), spans) end
close_queues()
if of_calls > 0 then calls.make_room(of_calls, max_bytes) end
local answer = table.concat(refused, ';')
call('HSET', key.session(id), 'settle_no', ARGV[2], 'settle', answer, 'suspects', text(suspects))
return { 'OK', answer }
