-- Giving claimed messages back: to the front of their lines in the order of ids, split by their crashes.

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

-- Moves spans from in flight to the front of their lines.
local function to_front(queue, spans)
  table.sort(spans, by_id)
  local ready, suspects, count = {}, {}, 0
  for _, span in ipairs(spans) do
    count = count + span.len
    local line = span.crashes >= SUSPECT_CRASHES and suspects or ready
    line[#line + 1] = write_entry(span)
  end
  add(queue, 'in_flight', -count)
  add(queue, 'ready', count)
  push_front(key.ready(queue.name), ready)
  push_front(key.suspects(queue.name), suspects)
  if count > 0 then queue.wakes = math.max(queue.wakes, 1) end
end

-- The claims of a session, or some of them if there are very many: who works on so many at once has no order to keep.
local function claimed_places(count, id, most)
  if count <= most then return call('HKEYS', key.claims(id)) end
  return call('HRANDFIELD', key.claims(id), most / 2)
end

-- Gives back what a session holds, the last claims first, until so many entries are made: a call takes a bounded time
-- whatever was held. How many messages went back, how many are dead, whether something is left, and how many went back to
-- each queue.
local function return_some(id, node, lost, most)
  local claims, held = {}, call('HLEN', key.claims(id))
  for i, place in ipairs(claimed_places(held, id, most)) do
    local no, name = string.match(place, '^(%d+) ?(.*)$')
    claims[i] = { no = tonumber(no), queue = name, place = place }
  end
  table.sort(claims, function(a, b)
    if a.queue == b.queue then return a.no > b.no end
    return a.queue > b.queue
  end)
  local back, dead, made, whole, returning, by_queue = 0, 0, 0, 0, {}, {}
  for _, claim in ipairs(claims) do
    if made >= most then break end
    local name, spans, runs = read_claim(call('HGET', key.claims(id), claim.place))
    local queue, gone = known_queue(name), {}
    if not queue then error({ err = 'DAMAGED queue ' .. name .. ' is claimed from but unknown' }) end
    returning[name] = returning[name] or {}
    load_carried(id, claim, spans)
    local is_missing = #runs > 0 and not singles_left(id, claim.place)
    for _, run in ipairs(runs) do add_run(spans, id, claim.place, run, is_missing) end
    if #runs > 0 then table.sort(spans, by_id) end
    local left = #spans
    while left > 0 and made < most do
      local span = spans[left]
      if span.single then gone[#gone + 1] = single_at(span.first, claim.place) end
      local crashes = span.crashes + (lost and 1 or 0)
      -- Messages to an entry.
      local size = crashes > MAX_CRASHES and 1 or not lost and span.len or crashes == 1 and SPLIT_AFTER_CRASH or 1
      local len = math.min(span.len, (most - made) * size)
      if len < span.len then
        spans[left] = over(span, span.first, span.len - len)
        span = over(span, span.first + span.len - len, len)
      else
        left = left - 1
      end
      made, span.crashes = made + (span.role and OF_A_CALL or math.ceil(len / size)), crashes
      if crashes > MAX_CRASHES then
        bury(queue, span, node, 'lost ' .. text(crashes) .. ' ' .. LOST)
        dead = dead + len
      elseif calls.is_withheld(name, span) then
        add(queue, 'in_flight', -1)
        calls.cancel_message(queue, span)
      else
        if span.role then calls.returned(name, span) end
        for first = span.first, span.first + len - 1, size do
          local entry = over(span, first, math.min(size, span.first + len - first))
          table.insert(returning[name], entry)
        end
        back = back + len
        by_queue[name] = (by_queue[name] or 0) + len
      end
    end
    if is_missing or #gone > 0 and remove_singles(id, claim.place, gone) == 0 then runs = {} end
    if left == 0 then
      whole = whole + 1
      call('HDEL', key.claims(id), claim.place)
      call('HDEL', key.carried(id), claim.place)
    else
      local others = {}
      for i = 1, left do
        if not spans[i].single then others[#others + 1] = spans[i] end
      end
      call('HSET', key.claims(id), claim.place, write_claim(name, others, runs))
    end
    made = made + A_CLAIM
  end
  for name, spans in pairs(returning) do to_front(known_queue(name), spans) end
  return back, dead, whole < held, by_queue
end

-- The same of a session that is over, or is to be over in this call. If something is left, the session is an unreaped:
-- beats tell of it as of one past its lease until whoever reaps it has come to its end.
local function return_claims(id, node, lost)
  local back, dead, more, by_queue = return_some(id, node, lost, RETURNED_AT_ONCE)
  if more then
    call('HSET', key.unreaped(id), 'node', node, 'lost', lost and '1' or '')
    call('ZADD', key.sessions, '0', id)
  else
    call('UNLINK', key.claims(id), key.carried(id), key.unreaped(id))
    call('ZREM', key.sessions, id)
  end
  return back, dead, more, by_queue
end

-- The node and the loss of an unreaped; nothing if there is none.
local function read_unreaped(id)
  local unreaped = call('HMGET', key.unreaped(id), 'node', 'lost')
  if unreaped[1] then return unreaped[1], unreaped[2] == '1' end
  return nil
end

-- Removes a session with its answers; its claims are left to return_claims(). It works for no queue and waits for none,
-- and others are woken in its stead: a name may have been on its list.
local function end_session(id)
  local record = call('HGETALL', key.session(id))
  local kind, queues, batons, page = '', '', 0, '0'
  for i = 1, #record, 2 do
    local field, value = record[i], record[i + 1]
    if field == 'kind' then
      kind = value
    elseif field == 'queues' then
      queues = value
    elseif field == 'batons' then
      batons = tonumber(value)
    elseif field == 'page' then
      page = value
    elseif string.sub(field, 1, 2) == 'c:' and string.find(value, '|w', 1, true) then
      local name = string.sub(field, 3)
      -- It may have been woken since its last claim.
      local queue = call('ZREM', key.waiters(name), id) == 1 and known_queue(name)
      if queue then queue.wakes = IN_ITS_STEAD end
    end
  end
  if batons == 0 then count_worker(kind, queues, -1) end
  for name in string.gmatch(queues, '[^,]+') do
    local queue = known_queue(name)
    if queue then queue.wakes = IN_ITS_STEAD end
  end
  call('UNLINK', key.session(id), key.wakes(id), key.told(id))
  remove_submits(id, page)
  cache.gone(id)
  call('ZREM', key.leases, id)
  keep_least()
  call('SREM', key.nodes, id)
end
