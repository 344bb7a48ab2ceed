-- Counting what is stored, for the deep audit: descriptors in pages, never more at once than fits the stack.
local PAGE = 4000
local MODULUS = 1000003

-- What was found of one kind: messages, and (sum of ids) modulo 1,000,003.
local function nothing_found()
  return { count = 0, sum = 0 }
end

local function found(into, first, len)
  into.count = into.count + len
  into.sum = math.fmod(into.sum + math.fmod(len * math.fmod(first, MODULUS) + len * (len - 1) / 2, MODULUS), MODULUS)
end

-- Counts the messages of a piece as text, read no further than needed.
local function found_piece(into, written)
  local a, b, c, d = string.match(written, '^(%d+),(%d+),(%d+),?(%d*)')
  if d == '' then found(into, tonumber(a), tonumber(b)) else found(into, tonumber(c), tonumber(d)) end
end

-- Counts places `from` .. `from + limit - 1` of what a queue keeps of one kind; how many descriptors were there.
local function count_page(kind, name, from, limit, into)
  local past = from + limit - 1
  if kind == 'ready' or kind == 'suspects' then
    local pieces = call('LRANGE', key[kind](name), from, past)
    for _, piece in ipairs(pieces) do found_piece(into, piece) end
    return #pieces
  end
  if kind == 'delayed' then
    local pieces = call('ZRANGE', key.delayed(name), from, past)
    for _, piece in ipairs(pieces) do found_piece(into, string.sub(piece, 18)) end
    return #pieces
  end
  local ids = call('ZRANGE', key.dead_order(name), from, past)
  for _, id in ipairs(ids) do found(into, tonumber(id), 1) end
  return #ids
end

local function count_all(kind, name, into)
  local from = 0
  repeat
    local seen = count_page(kind, name, from, PAGE, into)
    from = from + seen
  until seen < PAGE
end

-- Counts the claims of one session into a table by queue.
local function count_claims(id, by_queue)
  local claims = call('HVALS', key.claims(id))
  for _, written in ipairs(claims) do
    local bar = string.find(written, '|', 1, true)
    local name = string.sub(written, 1, bar - 1)
    by_queue[name] = by_queue[name] or nothing_found()
    for piece in string.gmatch(string.sub(written, bar + 1), '[^;]+') do found_piece(by_queue[name], piece) end
  end
end
