-- Calls: engine/calls.rs in Lua. A call is filed as `queue/id`; people and programs name it `queue/id@born`. Its record is a hash of numbers; beside it lie its open messages
-- that are held, delayed or have told something, how many each session holds, who follows, its events and their keys.
local calls = {}
local CALL_FIELDS = { 'open', 'running', 'delayed', 'cancelled', 'marked', 'ended', 'next', 'first', 'bytes', 'keys',
  'linger', 'followed', 'born' }

-- The call that a span belongs to.
function calls.of(name, span)
  if span.role == 'c' then return name .. '/' .. text(span.first) end
  return call('HGET', key.joined, name .. ' ' .. text(span.first)) or nil
end

-- The record of a call; nothing if there is none. `ended` is 0, or 1 done, 2 dead, 3 cancelled; `linger` 0 without, or one
-- more than its milliseconds.
function calls.read(it)
  local stored = it and call('HMGET', key.call(it), unpack(CALL_FIELDS))
  if not stored or not stored[1] then return nil end
  local record = { name = it, told = false }
  for at, field in ipairs(CALL_FIELDS) do record[field] = tonumber(stored[at]) or 0 end
  return record
end

-- The record of a call that somebody names, or why it is not given: nothing if there is none.
function calls.named(given)
  local it, born = string.match(given, '^([^@]+)@?(%d*)$')
  local record = calls.read(it)
  if record and born ~= '' and tonumber(born) ~= record.born then return nil, { 'OTHERCALL' } end
  return record
end

-- A message as events name it.
function calls.name_of(name, span)
  return name .. '/' .. text(span.first) .. '@' .. text(span.born)
end

function calls.write(record)
  local fields = {}
  for at, field in ipairs(CALL_FIELDS) do fields[2 * at - 1], fields[2 * at] = field, text(record[field]) end
  call('HSET', key.call(record.name), unpack(fields))
  if record.told then calls.wake(record) end
end

-- Wakes those who wait for an event.
function calls.wake(record)
  record.told = false
  local followers = call('HGETALL', key.followers(record.name))
  for at = 1, #followers, 2 do
    local position, number = string.match(followers[at + 1], '^(%d+),(%d+),1$')
    if position and alive(followers[at]) then
      call('HSET', key.followers(record.name), followers[at], position .. ',' .. number .. ',0')
      wake_session(followers[at], '!' .. number)
    elseif position then
      call('HDEL', key.followers(record.name), followers[at])
    end
  end
end

-- Adds an event as message/call.rs writes it; calls.write() wakes those who wait for it.
function calls.append(record, event)
  call('RPUSH', key.events(record.name), event)
  record.next, record.bytes, record.told = record.next + 1, record.bytes + #event + AN_EVENT, true
end
function calls.tell(record, event, message, data)
  if message then message = string.char(#message) .. message end
  calls.append(record, string.char(message and 2 or 0, #event) .. event .. (message or '') .. data)
end

-- What is known of an open message: the session and the claim that hold it, how much it has told, whether it is delayed.
function calls.hold(record, place)
  local session, claim_no, emitted, delayed =
    string.match(call('HGET', key.members(record.name), place) or '', '^(%x*),(%d*),(%d+),(%d)$')
  if not emitted then return { session = '', claim_no = '', emitted = 0, delayed = 0 } end
  return { session = session, claim_no = claim_no, emitted = tonumber(emitted), delayed = tonumber(delayed) }
end
function calls.put_hold(record, place, hold)
  if hold.session == '' and hold.emitted == 0 and hold.delayed == 0 then
    call('HDEL', key.members(record.name), place)
  else
    call('HSET', key.members(record.name), place,
      hold.session .. ',' .. hold.claim_no .. ',' .. text(hold.emitted) .. ',' .. hold.delayed)
  end
end

-- A delayed message among those of its call.
function calls.delayed_place(name, span)
  return name .. ' ' .. padded(text(span.first))
end

-- What a call that has ended counts for.
function calls.weight(it, bytes, keys)
  return A_CALL + bytes + keys + call('HSTRLEN', key.call(it), 'outcome')
end

-- A call among those that have ended, of which those that expire together are in the order of queue and id.
function calls.ended_place(it)
  local name, id = string.match(it, '^(.+)/(%d+)$')
  return name .. ' ' .. padded(id)
end

-- Forgets calls that have ended with all that they have told, the oldest first: up to `limit` that have expired, or until they
-- counted for `bytes`.
function calls.forget(limit, upto, bytes)
  local oldest, count, gone = call('ZRANGEBYSCORE', key.call_ends, '-inf', upto, 'LIMIT', 0, limit), 0, 0
  for _, place in ipairs(oldest) do
    if gone >= bytes then break end
    local it = string.gsub(place, ' 0*', '/')
    local sizes = call('HMGET', key.call(it), 'bytes', 'keys')
    count, gone = count + 1, gone + calls.weight(it, tonumber(sizes[1] or 0), tonumber(sizes[2] or 0))
    call('UNLINK', key.call(it), key.members(it), key.holders(it), key.followers(it), key.events(it), key.emit_keys(it),
      key.delays(it))
  end
  if count == 0 then return end
  call('ZREMRANGEBYRANK', key.call_ends, 0, count - 1)
  call('HINCRBY', key.meta, 'calls', text(-gone))
end

-- Keeps those that have ended within a bound, after a step that has ended at most `ended` of them: as many of the oldest go,
-- and a few more where the bound was lower before, a long log came, or calls have ended otherwise than by a report.
function calls.make_room(ended, max_bytes)
  local over = tonumber(call('HGET', key.meta, 'calls') or 0) - max_bytes
  if over > 0 then calls.forget(ended + EXPIRED_AT_ONCE, '+inf', over) end
end

-- Begins a call with the message just stored.
function calls.begin(name, first, linger)
  calls.forget(EXPIRED_AT_ONCE, text(now), math.huge)
  local it = name .. '/' .. text(first)
  calls.write({ name = it, told = false, open = 1, running = 0, delayed = 0, cancelled = 0, marked = 0, ended = 0, next = 1,
    first = 1, bytes = 0, keys = 0, linger = linger and linger + 1 or 0, followed = now, born = now })
  if linger then call('ZADD', key.looks, text(now + linger), it) end
end

-- The message just stored joins a call, which is there.
function calls.join(it, name, first)
  call('HINCRBY', key.call(it), 'open', 1)
  call('HSET', key.joined, name .. ' ' .. text(first), it)
end

-- Whether a message is to end instead of being given or going back.
function calls.is_withheld(name, span)
  if not span.role then return false end
  local it = calls.of(name, span)
  return it and call('HGET', key.call(it), 'marked') == '1'
end

-- A session has claimed a message. If it told something when it was held before, that is void now, which is told.
function calls.claimed(name, span, session, claim_no)
  local record = calls.read(calls.of(name, span))
  if not record then return end
  local place = name .. ' ' .. text(span.first)
  local before = calls.hold(record, place)
  record.running, record.delayed = record.running + 1, record.delayed - before.delayed
  if before.delayed == 1 then call('ZREM', key.delays(record.name), calls.delayed_place(name, span)) end
  call('HINCRBY', key.holders(record.name), session, 1)
  if before.emitted > 0 and record.ended == 0 then
    calls.tell(record, RESTART, span.role == 'j' and calls.name_of(name, span), text(span.attempts + 1))
  end
  calls.put_hold(record, place, { session = session, claim_no = text(claim_no), emitted = 0, delayed = 0 })
  calls.write(record)
end

-- What a session held of a call it holds no longer.
function calls.let_go(record, hold)
  if hold.session == '' then return end
  record.running = record.running - 1
  if call('HINCRBY', key.holders(record.name), hold.session, -1) <= 0 then
    call('HDEL', key.holders(record.name), hold.session)
    if record.marked == 1 then call('SREM', key.told(hold.session), record.name) end
  end
end

-- A message that was held waits again, or is delayed until it is due.
function calls.returned(name, span, due)
  local record = calls.read(calls.of(name, span))
  if not record then return end
  local place = name .. ' ' .. text(span.first)
  local hold = calls.hold(record, place)
  calls.let_go(record, hold)
  local delayed = due and 1 or 0
  if due then call('ZADD', key.delays(record.name), text(due), calls.delayed_place(name, span)) end
  record.delayed = record.delayed + delayed
  calls.put_hold(record, place, { session = '', claim_no = '', emitted = hold.emitted, delayed = delayed })
  calls.write(record)
end

-- Whoever beats is to ask for another step of a marked call, or not.
function calls.look_again(record, is_due)
  if is_due then
    call('ZADD', key.looks, text(now), record.name)
  else
    call('ZREM', key.looks, record.name)
  end
end

-- Marks a call, and has those who hold messages of it told. What waits delayed is ended in a step of its own.
function calls.mark(record)
  record.marked = 1
  calls.look_again(record, record.delayed > 0)
  for _, session in ipairs(call('HKEYS', key.holders(record.name))) do call('SADD', key.told(session), record.name) end
end

-- A message of a call has ended: `D` done with its result or nothing, `x` dead and why, `c` cancelled.
function calls.ended(name, span, fate, detail)
  local record = calls.read(calls.of(name, span))
  if not record then return end
  local place = name .. ' ' .. text(span.first)
  local hold = calls.hold(record, place)
  calls.let_go(record, hold)
  record.open, record.delayed = record.open - 1, record.delayed - hold.delayed
  if hold.delayed == 1 then call('ZREM', key.delays(record.name), calls.delayed_place(name, span)) end
  call('HDEL', key.members(record.name), place)
  if span.role == 'j' then call('HDEL', key.joined, place) end
  if fate == 'c' then
    record.cancelled = record.cancelled + 1
  elseif record.ended == 0 and fate == 'x' then
    call('HSET', key.call(record.name), 'outcome', detail)
    record.ended = 2
    calls.tell(record, ERROR, span.role == 'j' and calls.name_of(name, span), detail)
    calls.mark(record)
  elseif record.ended == 0 and span.role == 'c' and detail then
    call('HSET', key.call(record.name), 'outcome', detail)
  end
  if record.open == 0 then
    if record.ended == 0 then
      if record.cancelled > 0 then
        record.ended = 3
        call('HDEL', key.call(record.name), 'outcome')
        calls.tell(record, CANCELLED, nil, '')
      else
        record.ended = 1
        calls.tell(record, END, nil, call('HGET', key.call(record.name), 'outcome') or '')
      end
    end
    call('ZREM', key.looks, record.name)
    call('ZADD', key.call_ends, text(now + CALL_TTL_MS), calls.ended_place(record.name))
    call('HINCRBY', key.meta, 'calls', text(calls.weight(record.name, record.bytes, record.keys)))
  end
  calls.write(record)
end

-- Ends a message because its call was cancelled; it is counted no longer as what it was.
function calls.cancel_message(queue, span)
  add(queue, 'cancelled', 1)
  add_sum(queue, 'cancelled_sum', span.first, 1)
  release(queue, span)
  calls.ended(queue.name, span, 'c')
end

-- The entry of a delayed message: those that are due together lie in the order of their ids.
function calls.find_delayed(line, due, id)
  local low = call('ZCOUNT', line, '-inf', '(' .. due)
  local past = low + call('ZCOUNT', line, due, due)
  while low < past do
    local middle = math.floor((low + past) / 2)
    local member = call('ZRANGE', line, middle, middle)[1]
    local found = string.sub(member, 1, 16)
    if found == id then return member end
    if found < id then low = middle + 1 else past = middle end
  end
  error({ err = 'DAMAGED message ' .. id .. ' of a call is not delayed' })
end

-- Ends what of a marked call waits delayed, as much of it as one step may, and nothing while messages are held still.
-- Whether there is more: then whoever beats asks for another step, should the one who cancels be gone.
function calls.end_delayed(record)
  if held() then
    calls.look_again(record, true)
    return false
  end
  local delays = call('ZRANGE', key.delays(record.name), 0, DELAYED_AT_ONCE - 1, 'WITHSCORES')
  local more = #delays > 0 and 2 * record.delayed > #delays
  for at = 1, #delays, 2 do
    local name, id = string.match(delays[at], '^(.+) (%d+)$')
    local line, queue = key.delayed(name), known_queue(name)
    local member = calls.find_delayed(line, text(tonumber(delays[at + 1])), id)
    call('ZREM', line, member)
    add(queue, 'delayed', -1)
    calls.cancel_message(queue, (read_entry(string.sub(member, 18))))
  end
  close_queues()
  calls.look_again(record, more)
  return more
end

-- Forgets followers whose sessions are gone; the furthest of those left, nothing without any.
function calls.furthest(record)
  local followers, furthest = call('HGETALL', key.followers(record.name)), nil
  for at = 1, #followers, 2 do
    if alive(followers[at]) then
      furthest = math.max(furthest or 0, tonumber(string.match(followers[at + 1], '^%d+')))
    else
      call('HDEL', key.followers(record.name), followers[at])
    end
  end
  return furthest
end

-- Events of a call from a number on: so many at most, with so many bytes unless it is one.
function calls.events(record, from, budget)
  local given, bytes, at = {}, 0, from - record.first
  while #given < EVENTS_AT_ONCE do
    local page = call('LRANGE', key.events(record.name), at, math.min(at + 32, from - record.first + EVENTS_AT_ONCE) - 1)
    for _, event in ipairs(page) do
      bytes = bytes + #event
      if #given > 0 and bytes > budget then return given end
      given[#given + 1] = event
    end
    if #page < 32 then return given end
    at = at + 32
  end
  return given
end

-- The answer to who reads events: the record, or a refusal; the first that is given; and the events.
function calls.page(it, from, budget)
  local record, other = calls.named(it)
  if not record then return nil, other or { 'NOCALL' } end
  from = math.min(math.max(tonumber(from), 1), record.next)
  if from < record.first then return nil, { 'GONE', text(record.first) } end
  return record, from, calls.events(record, from, tonumber(budget))
end
