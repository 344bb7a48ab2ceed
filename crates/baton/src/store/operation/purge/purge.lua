#!lua flags=allow-oom
-- Purpose: removes what waits in a queue, up to MOST_PURGED entries a step; failed messages too if asked.
-- KEYS: 1 root
-- ARGV: 1 session, 2 dispose number, 3 queue, 4 last id to remove from the line (empty at the first step), 5 1 with failed
-- Returns: OK `removed failed upto left` | STALE | TURN last | DRAINBUSY holder | HELD ms
-- Idempotency: by number; the last answer is kept.
local id, dispose_no, name = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local session = visit(id, 'dispose_no', 'dispose')
if not session then return { 'STALE' } end
local wait = held()
if wait then return wait end
local last = tonumber(session[2] or 0)
if dispose_no ~= last + 1 then
  if dispose_no == last and session[3] and string.find(session[3], ' ') then return { 'OK', session[3] } end
  return { 'TURN', text(last) }
end
local queue = known_queue(name)
local upto, removed, failed, left = ARGV[4] ~= '' and tonumber(ARGV[4]) or 0, 0, 0, false
if queue then
  local with_failed = ARGV[5] == '1'
  local holder = with_failed and alive(call('HGET', key.queue(name), 'drainer'))
  if holder and holder ~= id then return { 'DRAINBUSY', holder } end
  take_in(queue)
  if ARGV[4] == '' then upto = queue.pushed end
  local weight = 0
  local function count(first, len)
    removed = removed + len
    add(queue, 'drained', len)
    add_sum(queue, 'drained_sum', first, len)
  end
  -- A message of a call ends as cancelled: its follower is to hear that it will not run.
  local function remove(span)
    weight = weight + (span.role and OF_A_CALL or 1)
    count(span.first, span.len)
    release(queue, span)
    if span.role then calls.ended(name, span, 'c') end
  end
  for _, line in ipairs({ key.suspects(name), key.ready(name) }) do
    local goes_on = true
    while goes_on do
      local front, used = call('LRANGE', line, 0, 127), 0
      goes_on = #front == 128
      for _, entry in ipairs(front) do
        local first, len, bytes, home
        if is_bundle(entry) then
          first, len, bytes, home = read_bundle(entry)
        end
        local span = not first and read_entry(entry)
        -- What was pushed after the purge began stands behind what waited then.
        if (first or span.first) > upto then
          goes_on = false
          break
        end
        if weight >= MOST_PURGED then
          left, goes_on = true, false
          break
        end
        used = used + 1
        add(queue, 'ready', -(len or span.len))
        if span then
          remove(span)
        else
          weight = weight + 1
          count(first, len)
          lighten(queue, bytes)
          call('UNLINK', key.bundle(name, home))
        end
      end
      if used > 0 then call('LTRIM', line, used, -1) end
    end
  end
  local line = key.delayed(name)
  while not left and queue.delayed > 0 do
    local page, gone = call('ZRANGE', line, 0, 127), {}
    if #page == 0 then break end
    for _, member in ipairs(page) do
      if weight >= MOST_PURGED then
        left = true
        break
      end
      gone[#gone + 1] = member
      add(queue, 'delayed', -1)
      remove((read_entry(string.sub(member, 18))))
    end
    if #gone > 0 then call('ZREM', line, unpack(gone)) end
  end
  if with_failed and not left then
    local ids = weight < MOST_PURGED and call('ZRANGE', key.dead_order(name), 0, MOST_PURGED - weight - 1) or {}
    for _, message in ipairs(ids) do
      add(queue, 'dead', -1)
      count(tonumber(message), 1)
    end
    if #ids > 0 then
      call('HDEL', key.dead(name), unpack(ids))
      call('ZREMRANGEBYRANK', key.dead_order(name), 0, #ids - 1)
    end
    failed, left = #ids, queue.dead > 0
  end
  close_queues()
end
local answer = string.format('%d %d %d %d', removed, failed, upto, left and 1 or 0)
call('HSET', key.session(id), 'dispose_no', ARGV[2], 'dispose', answer)
return { 'OK', answer }
