-- Giving claimed messages back: to the front of their lines in the order of ids, split by their losses.

-- Puts texts before all others of a list, the first of them foremost; from the last on, in runs small enough to
-- be arguments.
local function push_front(list, texts)
  local last = #texts
  while last > 0 do
    local run = {}
    for i = last, math.max(last - 999, 1), -1 do run[#run + 1] = texts[i] end
    call('LPUSH', list, unpack(run))
    last = last - #run
  end
end

-- Moves pieces from in flight to the front of their lines.
local function to_front(queue, pieces)
  table.sort(pieces, function(a, b) return a.first < b.first end)
  local ready, suspects, count = {}, {}, 0
  for _, piece in ipairs(pieces) do
    count = count + piece.len
    local line = piece.losses >= SUSPECT_LOSSES and suspects or ready
    line[#line + 1] = write_entry(piece)
  end
  add(queue, 'in_flight', -count)
  add(queue, 'ready', count)
  push_front(key.ready(queue.name), ready)
  push_front(key.suspects(queue.name), suspects)
  if count > 0 then queue.wakes = math.max(queue.wakes, 1) end
end

-- Cuts a piece to the size its losses allow; one that was not lost stays whole.
local function split(piece, lost, into)
  local size = not lost and piece.len or piece.losses == 1 and SPLIT_AFTER_LOSS or 1
  local first, past = piece.first, piece.first + piece.len
  while first < past do
    local len = math.min(past - first, size)
    into[#into + 1] = over(piece, first, len)
    first = first + len
  end
end

-- Gives back all claims of a session; how many messages went back, and how many are dead.
local function return_all(id, node, lost)
  local stored, claims = call('HGETALL', key.claims(id)), {}
  for i = 1, #stored, 2 do
    local no, name = string.match(stored[i], '^(%d+) ?(.*)$')
    claims[#claims + 1] = { no = tonumber(no), queue = name, place = stored[i], written = stored[i + 1] }
  end
  table.sort(claims, function(a, b)
    if a.queue == b.queue then return a.no < b.no end
    return a.queue < b.queue
  end)
  local back, dead, returning = 0, 0, {}
  for _, claim in ipairs(claims) do
    local name, pieces = read_claim(claim.written)
    load_carried(id, claim.place, pieces)
    local queue = known_queue(name)
    if not queue then error({ err = 'DAMAGED queue ' .. name .. ' is claimed from but unknown' }) end
    returning[name] = returning[name] or {}
    for _, piece in ipairs(pieces) do
      if lost then piece.losses = piece.losses + 1 end
      if piece.losses > MAX_LOSSES then
        local reason = 'lost ' .. text(piece.losses) .. ' ' .. LOST
        bury(queue, piece, node, reason)
        dead = dead + piece.len
      else
        back = back + piece.len
        split(piece, lost, returning[name])
      end
    end
  end
  for name, pieces in pairs(returning) do to_front(known_queue(name), pieces) end
  return back, dead
end

-- Removes a session with its answers and claims. It works for no queue and waits for none, and others are woken in its
-- stead: a name may have been on its list.
local function drop_session(id)
  local record = call('HGETALL', key.session(id))
  local kind, queues, batons = '', '', 0
  for i = 1, #record, 2 do
    local field, value = record[i], record[i + 1]
    if field == 'kind' then
      kind = value
    elseif field == 'queues' then
      queues = value
    elseif field == 'batons' then
      batons = tonumber(value)
    elseif string.sub(field, 1, 2) == 'c:' and string.find(value, '|w', 1, true) then
      local name = string.sub(field, 3)
      call('ZREM', key.waiters(name), id)
      local queue = known_queue(name)
      if queue then queue.wakes = IN_ITS_STEAD end
    end
  end
  if batons == 0 then count_worker(kind, queues, -1) end
  for name in string.gmatch(queues, '[^,]+') do
    local queue = known_queue(name)
    if queue then queue.wakes = IN_ITS_STEAD end
  end
  call('UNLINK', key.session(id), key.claims(id), key.carried(id), key.submits(id), key.wakes(id))
  call('ZREM', key.sessions, id)
  call('ZREM', key.leases, id)
  keep_least()
  call('SREM', key.nodes, id)
end
