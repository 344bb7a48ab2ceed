#!lua flags=allow-oom
-- Purpose: hands messages of a queue to a session: a suspect, then what is due, then ready. A claim that could have taken
--          more enters the session among those who wait for the queue; one that leaves something wakes another. What has
--          no body is buried, and the claim goes on with the next.
-- KEYS: 1 root
-- ARGV: 1 session, 2 queue, 3 claim number, 4 most messages, 5 most body bytes
-- Returns: OK queue rest {one or three for each span} | `+claim number queue rest` and one for each message, by the short
--          way | STALE | TURN last | SPENT claim_no | HELD ms
--          The rest is `more`, or the ms until the next is due ('' none) if nothing is left. The one is `span|parcel`;
--          the three are the span, then its parcel and nothing, or the head of it and where the rest lies as
--          `from to key`.
-- Idempotency: by number within (session, queue); a repeat gives what is still in flight under it. An empty claim does
--              not use its number.
call = redis.call
name_keys(KEYS[1])
local numbers = call('HGET', key.session(ARGV[1]), 'c:' .. ARGV[2])
local short = numbers and claim_inbox(ARGV[1], ARGV[2], numbers, ARGV[3], ARGV[4], ARGV[5])
if short then return short end
begin(KEYS[1])
local id, name, claim_no = ARGV[1], ARGV[2], tonumber(ARGV[3])
local record = visit(id, 'suspects', 'c:' .. name)
if not record then return { 'STALE' } end
local wait = held_queue(known_queue(name))
if wait then return wait end
local session = { id = id, suspects = tonumber(record[2] or 0) }
numbers = read_numbers(record[3])

local place = ARGV[3] .. ' ' .. name
-- Nothing was ever held under a number above the highest used.
local known = claim_no <= numbers.high and call('HGET', key.claims(id), place)
if known then
  local _, spans, runs = read_claim(known)
  load_carried(id, { place = place }, spans)
  local given, left, buried = {}, {}, false
  if #runs > 0 and not singles_left(id, place) then
    for _, run in ipairs(runs) do add_run(spans, id, place, run, true) end
    runs = {}
  end
  local all = { unpack(runs) }
  for _, span in ipairs(spans) do all[#all + 1] = span end
  if #runs > 0 then table.sort(all, function(a, b) return a.nth < b.nth end) end
  for _, span in ipairs(all) do
    local found = not span.is_run and find(name, span, math.huge)
    if span.is_run then
      for _, entry in ipairs(read_singles(id, place, span.first, span.len)) do
        if entry then given[#given + 1] = entry end
      end
    elseif found then
      left[#left + 1] = span
      give(given, write_span(span), found)
    else
      if span.crashes >= 2 then session.suspects = session.suspects - span.len end
      bury_missing(id, known_queue(name), span)
      buried = true
    end
  end
  if buried then
    close_queues()
    call('HSET', key.session(id), 'suspects', text(session.suspects))
    if #left + #runs > 0 then
      call('HSET', key.claims(id), place, write_claim(name, left, runs))
    else
      call('HDEL', key.claims(id), place)
      call('HDEL', key.carried(id), place)
    end
  end
  return { 'OK', name, 'more', given }
end

local refused = refused_number(numbers, claim_no)
if refused then return refused end
local suspects = session.suspects
local rest, given, changed = claim_messages(session, name, numbers, claim_no, tonumber(ARGV[4]), tonumber(ARGV[5]))
-- Whoever claims hands its waiting claim in anew.
if changed or numbers.parked ~= '' then
  numbers.parked = ''
  if session.suspects ~= suspects then
    call('HSET', key.session(id), 'c:' .. name, write_numbers(numbers), 'suspects', text(session.suspects))
  else
    call('HSET', key.session(id), 'c:' .. name, write_numbers(numbers))
  end
end
return { 'OK', name, rest, given }
