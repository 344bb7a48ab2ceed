-- Claims: the numbers of a session for a queue, and what it is given under one of them.
local CHUNK = 128

-- The numbers: the highest used, those below it that were not, whether the session may be among those who wait for the
-- queue, and the claim that waits with it as `number:messages:bytes`. Written as `highest|unused|w and that claim`.
local function read_numbers(written)
  local numbers = { high = 0, holes = {}, waits = '', parked = '' }
  if written then
    local used, unused, flag, parked = string.match(written, '^(%d+)|([%d,]*)|(w?)([%d:]*)$')
    numbers.high, numbers.waits, numbers.parked = tonumber(used), flag, parked
    for hole in string.gmatch(unused, '%d+') do numbers.holes[#numbers.holes + 1] = tonumber(hole) end
  end
  return numbers
end

local function write_numbers(numbers)
  local holes = {}
  for at, hole in ipairs(numbers.holes) do holes[at] = text(hole) end
  return text(numbers.high) .. '|' .. table.concat(holes, ',') .. '|' .. numbers.waits .. numbers.parked
end

-- Where a number is among those that were not used.
local function hole_at(numbers, claim_no)
  for at, hole in ipairs(numbers.holes) do
    if hole == claim_no then return at end
  end
  return nil
end

-- Why a number cannot be claimed under: it is too far ahead, or used. Nothing if it can.
local function refused_number(numbers, claim_no)
  if claim_no >= (numbers.holes[1] or numbers.high + 1) + CLAIM_WINDOW then return { 'TURN', text(numbers.high) } end
  if claim_no <= numbers.high and not hole_at(numbers, claim_no) then return { 'SPENT', text(claim_no) } end
  return nil
end

local function use_number(numbers, claim_no)
  if claim_no > numbers.high then
    for hole = numbers.high + 1, claim_no - 1 do numbers.holes[#numbers.holes + 1] = hole end
    numbers.high = claim_no
  else
    table.remove(numbers.holes, hole_at(numbers, claim_no))
  end
end

-- Adds a span to what a claim gives: the span, then its parcel and nothing, or the head of it and where the rest lies
-- as `from to key`. What is taken from a line with what it carries is given as it lay there: `span|parcel`.
local function give(given, written, found)
  local at = #given
  given[at + 1] = written
  if found.to - found.from < INLINE then
    given[at + 2], given[at + 3] = fetch(found), ''
  else
    given[at + 2], given[at + 3] = found.head, text(found.from) .. ' ' .. text(found.to) .. ' ' .. found.at
  end
end

-- Moves messages without a body, counted as in flight, to the errors.
local function bury_missing(id, queue, span)
  local at = call('HMGET', key.session(id), 'host', 'pid')
  bury(queue, span, at[1] .. '/' .. at[2], MISSING_BODY)
end

-- Takes as much of a span as fits, at least one message if the catch is empty; how many, or nothing if its bodies are
-- missing. `written` is the span as text, so that one taken whole is not written anew.
local function take_span(catch, span, written)
  local found = find(catch.queue, span, catch.budget)
  if found == nil then
    if catch.count > 0 then
      catch.stopped = true
      return 0
    end
    found = find(catch.queue, over(span, span.first, 1), math.huge)
  end
  if not found then return nil end
  local len = found.count
  catch.n = catch.n - len
  catch.budget = math.max(catch.budget - found.bytes, 0)
  if len < span.len then written = write_span(over(span, span.first, len)) end
  give(catch.given, written, found)
  if span.carried then
    written = claimed_span(written, catch.carried, span.carried)
    catch.bodies[#catch.bodies + 1] = span.body
    catch.carried = catch.carried + span.carried
  end
  catch.spans[#catch.spans + 1] = written
  catch.count, catch.weight = catch.count + 1, catch.weight + (span.role and OF_A_CALL or 1)
  if span.role then calls.claimed(catch.queue, span, catch.id, catch.claim_no) end
  return len
end

-- Takes a single as it lay in its line, into a run with those before it. False if it does not fit.
local SINGLE = '^(%d+),1,%d+|()'
local function take_single(catch, entry, first, bytes)
  local weight = bytes - PARCEL_TABLE - 4
  if weight > catch.budget and catch.count > 0 then
    catch.stopped = true
    return false
  end
  -- What is between two singles would come behind both when the claim is repeated.
  local run = catch.spans[#catch.spans]
  if type(run) ~= 'table' or run.first + run.len ~= first or run.len == CHUNK then
    run = { is_run = true, first = first, len = 0, each = bytes, entries = {} }
    catch.runs[#catch.runs + 1], catch.spans[#catch.spans + 1] = run, run
  end
  run.len = run.len + 1
  run.entries[run.len], catch.given[#catch.given + 1] = entry, entry
  if run.each ~= bytes then run.each = nil end
  catch.n, catch.budget = catch.n - 1, math.max(catch.budget - weight, 0)
  catch.count, catch.weight = catch.count + 1, catch.weight + 1
  return true
end

-- Keeps what a catch holds as the claim under this number.
local function keep_catch(catch, claim_no)
  local words, place, singles = {}, text(claim_no) .. ' ' .. catch.queue, 0
  for i, it in ipairs(catch.spans) do words[i] = type(it) == 'table' and write_run(it) or it end
  for _, run in ipairs(catch.runs) do
    local fields = {}
    for nth, entry in ipairs(run.entries) do
      fields[2 * nth - 1], fields[2 * nth] = single_at(run.first + nth - 1, place), entry
    end
    singles = singles + run.len
    if run == catch.runs[#catch.runs] then fields[#fields + 1], fields[#fields + 2] = left_at(place), text(singles) end
    call('HSET', key.carried(catch.id), unpack(fields))
  end
  call('HSET', key.claims(catch.id), place, catch.queue .. '|' .. table.concat(words, ';'))
  if catch.carried > 0 then call('HSET', key.carried(catch.id), place, table.concat(catch.bodies)) end
end

local function has_room(catch)
  return catch.n > 0 and catch.weight < MAX_SPANS and catch.buried < MOST_BURIED
end

-- How many spans are worth a look at once.
local function most_spans(catch)
  return math.min(catch.n, CHUNK, MAX_SPANS - catch.weight)
end

-- Ends a message whose call was cancelled.
local function withhold(catch, queue, span)
  catch.buried = catch.buried + OF_A_CALL
  calls.cancel_message(queue, span)
end

local function bury_in_catch(catch, queue, span)
  catch.buried = catch.buried + span.len
  bury_missing(catch.id, queue, span)
end

-- The counters of the books tell which lines are worth a look: they change in the same step as the lines.

-- A suspect leaves its line only as a whole, and is one message.
local function take_suspect(catch, queue)
  while has_room(catch) and queue.ready > 0 do
    local front = call('LINDEX', key.suspects(queue.name), 0)
    if not front then return 0 end
    local span, written = read_entry(front)
    if calls.is_withheld(queue.name, span) then
      call('LPOP', key.suspects(queue.name))
      add(queue, 'ready', -1)
      withhold(catch, queue, span)
    else
      local taken = take_span(catch, span, written)
      call('LPOP', key.suspects(queue.name))
      add(queue, 'ready', -span.len)
      add(queue, 'in_flight', span.len)
      if taken then return taken end
      bury_in_catch(catch, queue, span)
    end
  end
  return 0
end

-- What is due, by (due, id); false if the catch is full.
local function take_due(catch, queue)
  local line = key.delayed(queue.name)
  while has_room(catch) do
    if queue.delayed == 0 then return true end
    local due = call('ZRANGEBYSCORE', line, '-inf', text(now), 'LIMIT', 0, most_spans(catch))
    if #due == 0 then return true end
    local gone, is_full = {}, false
    for _, member in ipairs(due) do
      is_full = not has_room(catch)
      if is_full then break end
      local span, written = read_entry(string.sub(member, 18))
      if calls.is_withheld(queue.name, span) then
        call('ZREM', line, member)
        add(queue, 'delayed', -1)
        withhold(catch, queue, span)
      else
        local taken = take_span(catch, span, written)
        is_full = taken == 0
        if is_full then break end
        gone[#gone + 1] = member
        if not taken then bury_in_catch(catch, queue, span) end
      end
    end
    if #gone > 0 then
      call('ZREM', line, unpack(gone))
      add(queue, 'delayed', -#gone)
      add(queue, 'in_flight', #gone)
    end
    if is_full then return false end
  end
  return false
end

-- Takes as much as fits of the span at the front of the line. Whether the line goes on behind it, and what is left of the
-- span as text: nothing if it is untouched or used up, and used up is the third.
local function take_front(catch, queue, entry)
  local span, written = read_entry(entry)
  if calls.is_withheld(queue.name, span) then
    add(queue, 'ready', -1)
    withhold(catch, queue, span)
    return true, nil, true
  end
  local wanted = math.min(span.len, catch.n)
  local part = wanted < span.len and over(span, span.first, wanted) or span
  local taken = take_span(catch, part, wanted < span.len and write_span(part) or written)
  local gone = taken or math.min(wanted, MOST_BURIED - catch.buried)
  add(queue, 'ready', -gone)
  add(queue, 'in_flight', gone)
  if not taken then bury_in_catch(catch, queue, over(span, span.first, gone)) end
  local goes_on = not taken or taken == wanted
  catch.stopped = catch.stopped or not goes_on
  if gone == span.len then return goes_on, nil, true end
  return goes_on, gone > 0 and write_span(over(span, span.first + gone, span.len - gone)) or nil, false
end

-- Takes as many as fit of entries of an inbox; how many, and their bytes.
local function take_entries(catch, first, entries)
  local taken, bytes = 0, 0
  for nth, entry in ipairs(entries) do
    local id, length = first + nth - 1, #entry - BORN
    if not has_room(catch) or not take_single(catch, inbox_entry(id, entry), id, length) then break end
    taken, bytes = nth, bytes + length
  end
  return taken, bytes
end

-- Takes as much as fits of a bundle; how many, and what is left of it, nothing if it is used up.
local function take_bundle(catch, written)
  local first, count, bytes, home = read_bundle(written)
  local from, wanted = key.bundle(catch.queue, home), math.min(count, most_spans(catch))
  local entries = call('LRANGE', from, 0, wanted - 1)
  local taken, gone = take_entries(catch, first, entries)
  local past, left = first + taken, count - taken
  if left == 0 then
    call('DEL', from)
    return taken, nil
  end
  if taken == #entries and taken < wanted then
    -- The others are missing: the next claim finds a parcel that is not there.
    catch.stopped = true
    return taken, write_span({ parcel = past, size = left, first = past, len = left, attempts = 0, crashes = 0, born = now })
  end
  if taken > 0 then call('LTRIM', from, taken, -1) end
  return taken, write_bundle(past, left, bytes - gone, home)
end

-- What is ready, from the front. The spans used up leave the line together; one cut in two leaves its rest.
local function take_ready(catch, queue)
  local line = key.ready(queue.name)
  -- Where there is an inbox, entries may be bundles: one at a time, until there is one that is none.
  local most = queue.inbox ~= 0 and 1 or CHUNK
  while has_room(catch) and queue.ready > 0 do
    local front = call('LRANGE', line, 0, math.min(most_spans(catch), most) - 1)
    local used, singles, rest, goes_on = 0, 0, nil, #front > 0
    most = front[1] and is_bundle(front[1]) and 1 or math.min(8 * most, CHUNK)
    for _, entry in ipairs(front) do
      if not has_room(catch) then break end
      local single, from = string.match(entry, SINGLE)
      local is_used
      if single then
        is_used = take_single(catch, entry, tonumber(single), #entry - from + 1)
        goes_on, singles = is_used, singles + (is_used and 1 or 0)
      elseif is_bundle(entry) then
        local taken
        taken, rest = take_bundle(catch, entry)
        is_used = not rest
        goes_on, singles = is_used, singles + taken
      else
        goes_on, rest, is_used = take_front(catch, queue, entry)
      end
      if not is_used then break end
      used = used + 1
    end
    if singles > 0 then
      add(queue, 'ready', -singles)
      add(queue, 'in_flight', singles)
    end
    if used > 0 then call('LTRIM', line, used, -1) end
    if rest then call('LSET', line, 0, rest) end
    if not goes_on then return end
  end
end

-- What is in the inbox, from the front.
local function take_inbox(catch, queue)
  if queue.inbox == 0 then return end
  local entries = call('LRANGE', key.inbox(queue.name, queue.inbox, queue.pushed), 0, most_spans(catch) - 1)
  local taken, bytes = take_entries(catch, queue.pushed + 1, entries)
  if taken == 0 then return end
  call('LTRIM', key.inbox(queue.name, queue.inbox, queue.pushed), taken, -1)
  pass_inbox(queue.name, queue.inbox, queue.pushed, taken, bytes)
  add(queue, 'pushed', taken)
  add(queue, 'in_flight', taken)
  add(queue, 'bytes', bytes)
end

-- Carries out a claim under a number that is free: a suspect, then what is due, then ready. Changes `session` (its id
-- and suspects) and `numbers`, which the caller writes if the third value says so. Gives the rest and what is given, and
-- last what it cost, in spans.
local function claim_messages(session, name, numbers, claim_no, n, budget)
  local catch = {
    id = session.id, queue = name, n = n, budget = budget, given = {}, spans = {}, stopped = false, buried = 0,
    bodies = {}, carried = 0, runs = {}, count = 0, weight = 0,
    claim_no = claim_no,
  }
  local queue = known_queue(name)
  if queue and queue.paused == 0 then
    if session.suspects == 0 then session.suspects = take_suspect(catch, queue) end
    if take_due(catch, queue) then take_ready(catch, queue) end
    if has_room(catch) and not catch.stopped then take_inbox(catch, queue) end
  else
    queue = nil
  end
  local more = queue and (catch.stopped or not has_room(catch))
  local first = queue and queue.delayed > 0 and call('ZRANGE', key.delayed(name), 0, 0, 'WITHSCORES') or {}
  local next_due = tonumber(first[2])
  local taken, waited = catch.count > 0, numbers.waits
  numbers.waits = more and '' or 'w'
  if taken then
    use_number(numbers, claim_no)
    keep_catch(catch, claim_no)
    -- Something is left for others, or will be due before anybody looks again while this session may be busy.
    local left = has_ready(queue) or next_due ~= nil and next_due <= now + (more and SOON_MS or 0)
    queue.wakes = left and 1 or 0
  end
  -- Another one, not this one, which may wait from now on.
  if queue and queue.wakes > 0 then wake(queue, queue.wakes) end
  if not more then
    call('ZADD', key.waiters(name), 'NX', text(now), session.id)
    local known = queue or known_queue(name)
    if known and known.waiting == 0 then known.waiting, known.moved = 1, true end
  elseif waited == 'w' then
    call('ZREM', key.waiters(name), session.id)
  end
  if queue then queue.wakes = 0 end
  close_queues()
  local rest = more and 'more' or next_due and text(math.max(next_due - now, 0)) or ''
  return rest, catch.given, taken or numbers.waits ~= waited, catch.weight + catch.buried
end
