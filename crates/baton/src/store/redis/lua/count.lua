-- Counting what is stored, for the deep audit: descriptors in pages, never more at once than fits the stack.
local AT_ONCE = 4000

-- What was found of one kind: messages, (sum of ids) modulo MODULUS, the bytes they count for, how many of them have no
-- body, and the lowest of these.
local function nothing_found()
  return { count = 0, sum = 0, bytes = 0, lacking = 0 }
end

-- As part of an answer.
local function add_found(answer, it)
  for _, number in ipairs({ it.count, it.sum, it.bytes, it.lacking, it.lowest or 0 }) do
    answer[#answer + 1] = text(number)
  end
end

local function found(into, first, len)
  into.count = into.count + len
  into.sum = math.fmod(into.sum + math.fmod(len * math.fmod(first, MODULUS) + len * (len - 1) / 2, MODULUS), MODULUS)
end

-- Of what was found, these have no body.
local function found_none(into, first, len)
  into.lacking = into.lacking + len
  into.lowest = math.min(into.lowest or first, first)
end

-- Counts the messages of a span as text, read no further than needed, and weighs them where they lie; of what it carries
-- in a claim the caller says whether it is there. The first of them.
local function found_span(into, name, written)
  local a, b, c, d = string.match(written, '^(%d+),(%d+),(%d+),?(%d*)')
  local first, len = tonumber(c), tonumber(d)
  if d == '' then first, len = tonumber(a), tonumber(b) end
  found(into, first, len)
  local bar = string.find(written, '|', 1, true)
  if bar then
    into.bytes = into.bytes + #written - bar
  elseif not string.find(written, '*', 1, true) then
    local size, bytes = tonumber(b), nil
    if size > len then
      bytes = weigh_part(name, { parcel = tonumber(a), size = size, first = first, len = len })
    else
      bytes = call('STRLEN', size == 0 and key.own(name, c) or key.parcel(name, a))
    end
    if bytes and bytes > 0 then into.bytes = into.bytes + bytes else found_none(into, first, len) end
  end
  return first
end

-- Counts the messages of a bundle; what they weigh is in it.
local function found_bundle(into, name, written)
  local first, count, bytes, home = read_bundle(written)
  found(into, first, count)
  into.bytes = into.bytes + bytes
  local there = call('LLEN', key.bundle(name, home))
  if there < count then found_none(into, first + there, count - there) end
end

-- Adds those of a queue's inbox that lie at places `from` .. `past` of what is ready.
local function add_inbox(spans, name, from, past)
  local queue, at = known_queue(name), call('LLEN', key.ready(name)) - 1
  local last = queue.pushed - (queue.taken_in or 0)
  for nth, entry in ipairs(call('LRANGE', key.inbox(name, queue.inbox, last), 0, -1)) do
    if at + nth >= from and at + nth <= past then spans[#spans + 1] = inbox_entry(last + nth, entry) end
  end
end

-- Counts places `from` .. `from + limit - 1` of what a queue keeps of one kind; how many descriptors were there.
local function count_page(kind, name, from, limit, into)
  local past = from + limit - 1
  if kind == 'ready' or kind == 'suspects' then
    local spans = call('LRANGE', key[kind](name), from, past)
    if kind == 'ready' and #spans < limit then add_inbox(spans, name, from, past) end
    for _, span in ipairs(spans) do
      if is_bundle(span) then found_bundle(into, name, span) else found_span(into, name, span) end
    end
    return #spans
  end
  if kind == 'delayed' then
    local spans = call('ZRANGE', key.delayed(name), from, past)
    for _, span in ipairs(spans) do found_span(into, name, string.sub(span, 18)) end
    return #spans
  end
  local ids = call('ZRANGE', key.dead_order(name), from, past)
  for _, id in ipairs(ids) do found(into, tonumber(id), 1) end
  return #ids
end

local function count_all(kind, name, into)
  local from = 0
  repeat
    local seen = count_page(kind, name, from, AT_ONCE, into)
    from = from + seen
  until seen < AT_ONCE
end

-- Counts the singles of a run that are left.
local function count_run(id, place, run, into)
  if not singles_left(id, place) then
    found(into, run.first, run.len)
    return found_none(into, run.first, run.len)
  end
  for nth, entry in ipairs(read_singles(id, place, run.first, run.len)) do
    if entry then
      found(into, run.first + nth - 1, 1)
      into.bytes = into.bytes + #entry - string.find(entry, '|', 1, true)
    end
  end
end

-- A span of a claim takes at least eighteen bytes of text with its store time, so bytes bound the spans.
local SPAN_BYTES = 18

-- How many descriptors a session's claims have at most, and what a queue keeps.
local function claimed_descriptors(id)
  local descriptors = call('HLEN', key.carried(id))
  for _, place in ipairs(call('HKEYS', key.claims(id))) do
    descriptors = descriptors + math.ceil(call('HSTRLEN', key.claims(id), place) / SPAN_BYTES)
  end
  return descriptors
end

local function stored_descriptors(name)
  local queue = known_queue(name)
  local inbox = key.inbox(name, queue.inbox, queue.pushed - (queue.taken_in or 0))
  return call('LLEN', key.ready(name)) + call('LLEN', inbox) + call('LLEN', key.suspects(name))
    + call('ZCARD', key.delayed(name)) + call('ZCARD', key.dead_order(name))
end

-- Counts all that a queue keeps: ready, delayed, dead.
local function count_stored(name)
  local ready, delayed, dead = nothing_found(), nothing_found(), nothing_found()
  count_all('ready', name, ready)
  count_all('suspects', name, ready)
  count_all('delayed', name, delayed)
  count_all('dead', name, dead)
  return ready, delayed, dead
end

-- Counts one claim of a session into a table by queue; how many descriptors it has.
local function count_claim(id, place, by_queue)
  local written = call('HGET', key.claims(id), place)
  if not written then return 0 end
  local bar, seen = string.find(written, '|', 1, true), 0
  local name = string.sub(written, 1, bar - 1)
  local of_queue, carried = by_queue[name] or nothing_found(), nil
  by_queue[name] = of_queue
  for span in string.gmatch(string.sub(written, bar + 1), '[^;]+') do
    local run = string.byte(span) == 43 and read_run(span)
    if run then count_run(id, place, run, of_queue) end
    seen = seen + (run and run.len or 1)
    local first = not run and found_span(of_queue, name, span)
    local from, length = string.match(span, '%*(%d+),(%d+)$')
    if from then
      carried = carried or call('HSTRLEN', key.carried(id), place)
      of_queue.bytes = of_queue.bytes + tonumber(length)
      if tonumber(from) + tonumber(length) > carried then found_none(of_queue, first, 1) end
    end
  end
  return seen
end

local function count_claims(id, by_queue)
  for _, place in ipairs(call('HKEYS', key.claims(id))) do count_claim(id, place, by_queue) end
end
