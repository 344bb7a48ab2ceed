-- Counting what is stored, for the deep audit: descriptors in pages, never more at once than fits the stack.
local AT_ONCE = 4000

-- What was found of one kind: messages, (sum of ids) modulo MODULUS, how many of them have no body, and the lowest of
-- these.
local function nothing_found()
  return { count = 0, sum = 0, lacking = 0 }
end

-- As part of an answer.
local function add_found(answer, it)
  for _, number in ipairs({ it.count, it.sum, it.lacking, it.lowest or 0 }) do answer[#answer + 1] = text(number) end
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

-- Counts the messages of a piece as text, read no further than needed. The key of its bodies goes to `homes`; none for
-- what it carries. The first of them.
local function found_piece(into, name, written, homes)
  local a, b, c, d = string.match(written, '^(%d+),(%d+),(%d+),?(%d*)')
  local first, len = tonumber(c), tonumber(d)
  if d == '' then first, len = tonumber(a), tonumber(b) end
  found(into, first, len)
  if not string.find(written, '[|*]') then
    local home = b == '0' and key.own(name, c) or key.parcel(name, a)
    homes[#homes + 1] = { key = home, first = first, len = len }
  end
  return first
end

-- Looks for the bodies of what was found: all together, and one by one only where some are missing.
local function found_bodies(into, homes)
  for from = 1, #homes, 1000 do
    local keys, past = {}, math.min(from + 999, #homes)
    for i = from, past do keys[#keys + 1] = homes[i].key end
    if call('EXISTS', unpack(keys)) < #keys then
      for i = from, past do
        if call('EXISTS', homes[i].key) == 0 then
          found_none(into, homes[i].first, homes[i].len)
        end
      end
    end
  end
end

-- Adds those of a queue's inbox that lie at places `from` .. `past` of what is ready.
local function add_inbox(pieces, name, from, past)
  local entries, at = call('LRANGE', key.inbox(name), 0, -1), call('LLEN', key.ready(name)) - 1
  for nth, entry in ipairs(entries) do
    if at + nth >= from and at + nth <= past then
      pieces[#pieces + 1] = inbox_entry(known_queue(name).pushed - #entries + nth, entry)
    end
  end
end

-- Counts places `from` .. `from + limit - 1` of what a queue keeps of one kind; how many descriptors were there.
local function count_page(kind, name, from, limit, into)
  local past, homes = from + limit - 1, {}
  if kind == 'ready' or kind == 'suspects' then
    local pieces = call('LRANGE', key[kind](name), from, past)
    if kind == 'ready' and #pieces < limit then add_inbox(pieces, name, from, past) end
    for _, piece in ipairs(pieces) do found_piece(into, name, piece, homes) end
    found_bodies(into, homes)
    return #pieces
  end
  if kind == 'delayed' then
    local pieces = call('ZRANGE', key.delayed(name), from, past)
    for _, piece in ipairs(pieces) do found_piece(into, name, string.sub(piece, 18), homes) end
    found_bodies(into, homes)
    return #pieces
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
    if entry then found(into, run.first + nth - 1, 1) end
  end
end

-- Counts the claims of one session into a table by queue.
local function count_claims(id, by_queue)
  local claims = call('HGETALL', key.claims(id))
  for at = 1, #claims, 2 do
    local place, written = claims[at], claims[at + 1]
    local bar = string.find(written, '|', 1, true)
    local name = string.sub(written, 1, bar - 1)
    local of_queue, homes, carried = by_queue[name] or nothing_found(), {}, nil
    by_queue[name] = of_queue
    for piece in string.gmatch(string.sub(written, bar + 1), '[^;]+') do
      local is_run = string.byte(piece) == 43
      if is_run then count_run(id, place, read_run(piece), of_queue) end
      local first = not is_run and found_piece(of_queue, name, piece, homes)
      local from, length = string.match(piece, '%*(%d+),(%d+)$')
      if from then
        carried = carried or call('HSTRLEN', key.carried(id), place)
        if tonumber(from) + tonumber(length) > carried then found_none(of_queue, first, 1) end
      end
    end
    found_bodies(of_queue, homes)
  end
end
