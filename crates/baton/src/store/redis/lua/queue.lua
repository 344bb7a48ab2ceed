-- Records of queues: read once a call, changed here, written back once by close_queues().
local opened = nil

local other_counters = {
  __index = function(queue, counter)
    queue[counter] = tonumber(call('HGET', key.queue(queue.name), counter) or 0)
    return queue[counter]
  end,
}

-- Makes the record of a queue from its counters.
local function open_record(name, pushed, bytes, waiting, held, inbox, paused, ready, delayed, in_flight, done, done_sum)
  local queue = setmetatable({
    name = name, wakes = 0, moved = false, changed = false, buried = false, partly = false, taken_in = false,
    pushed = pushed, bytes = bytes, waiting = waiting, held = held, inbox = inbox, paused = paused, ready = ready,
    delayed = delayed, in_flight = in_flight, done = done, done_sum = done_sum,
  }, other_counters)
  opened[name] = queue
  return queue
end

-- The record of a queue, or nothing if it was never named.
local function known_queue(name)
  if opened[name] then return opened[name] end
  local packed = call('GET', key.counts(name))
  return packed and open_record(name, struct.unpack(COUNTS, packed)) or nil
end

-- The record of a queue, made if this is the first time it is named.
local function named_queue(name)
  local queue = known_queue(name)
  if queue then return queue end
  local waiting = foreign.refuse_queue(name) and call('EXISTS', key.waiters(name)) or 0
  local held = call('EXISTS', key.hold)
  -- A queue of this name that was removed: ids go on, and all before count as removed.
  local last, gone, sum = string.match(call('HGET', key.last_ids, name) or '', '^(%d+),(%d+),(%d+)$')
  queue = open_record(name, tonumber(last or 0), 0, waiting, held, 0, 0, 0, 0, 0, 0, 0)
  if last then
    call('HSET', key.queue(name), 'drained', gone, 'drained_sum', sum)
    call('HDEL', key.last_ids, name)
  end
  write_counts(queue)
  call('SADD', key.queues, name)
  return queue
end

-- The same with what is in its inbox: something may be put behind that. Not while a recount holds the store.
local function open_queue(name)
  return take_in(named_queue(name))
end

-- Puts a counter down as changed.
local function has_changed(queue, counter)
  if MOVING[counter] then
    queue.moved = true
  else
    queue.changed = queue.changed or {}
    queue.changed[counter] = true
  end
end

local function add(queue, counter, by)
  queue[counter] = queue[counter] + by
  has_changed(queue, counter)
end

-- (Sum of ids) modulo MODULUS. math.fmod is exact where Lua's % is not; every product stays below 2^53.
local function id_sum(first, len)
  return math.fmod(len * math.fmod(first, MODULUS) + len * (len - 1) / 2, MODULUS)
end

local function add_sum(queue, counter, first, len)
  queue[counter] = math.fmod(queue[counter] + id_sum(first, len), MODULUS)
  has_changed(queue, counter)
end

-- Wakes a session: puts the name of a queue on its list, after an empty one for the blocking read, which takes what it
-- returns with.
local function wake_session(id, name)
  call('RPUSH', key.wakes(id), '', name)
end

-- Wakes the one that has waited longest for a queue. If nobody does, the counts say so.
local function wake_first(name, counts)
  local waiter = call('ZPOPMIN', key.waiters(name))[1]
  if waiter then return wake_session(waiter, name) end
  call('SETRANGE', counts, WAITING_AT, struct.pack('<d', 0))
end

-- Wakes those that have waited longest for a queue, if the queue has something. The caller writes the counts.
local function wake(queue, count)
  if queue.waiting == 0 or queue.paused ~= 0 or queue.delayed == 0 and not has_ready(queue) then return end
  local waiters = call('ZPOPMIN', key.waiters(queue.name), count)
  for at = 1, #waiters, 2 do wake_session(waiters[at], queue.name) end
  if #waiters < 2 * count then queue.waiting, queue.moved = 0, true end
end

-- Counts a node among those without a baton that work for its queues (by 1), or no longer (by -1).
local function count_worker(kind, queues, by)
  if kind ~= 'n' then return end
  for name in string.gmatch(queues, '[^,]+') do call('HINCRBY', key.queue(name), 'workers', by) end
end

-- Writes the records of messages that were buried, three values each: place among the errors, id, record.
local function write_buried(queue)
  local buried = queue.buried
  for from = 1, #buried, 1500 do
    local records, places = {}, {}
    for i = from, math.min(from + 1499, #buried), 3 do
      records[#records + 1], records[#records + 2] = buried[i + 1], buried[i + 2]
      places[#places + 1], places[#places + 2] = buried[i], buried[i + 1]
    end
    call('HSET', key.dead(queue.name), unpack(records))
    call('ZADD', key.dead_order(queue.name), unpack(places))
  end
  queue.buried = false
end

-- What is left to do for parcels that have lost some of their messages: see partly.lua.
local close_parts = nil

-- Writes the changed counters back, and wakes as many waiters of each queue as its record says: one, if it was given
-- something.
local function close_queues()
  for name, queue in pairs(opened) do
    if queue.wakes > 0 then wake(queue, queue.wakes) end
    if queue.buried then write_buried(queue) end
    if queue.partly then close_parts(queue) end
    if queue.moved then
      write_counts(queue)
      close_box(name)
    end
    if queue.changed then
      local fields = {}
      for counter in pairs(queue.changed) do
        fields[#fields + 1], fields[#fields + 2] = counter, text(queue[counter])
      end
      call('HSET', key.queue(name), unpack(fields))
    end
    queue.wakes, queue.moved, queue.changed = 0, false, false
  end
end

-- The books of a queue as an answer: its name, then every counter.
local function read_books(name)
  local queue, books = take_in(known_queue(name)), call('HMGET', key.queue(name), unpack(COUNTERS))
  for i, counter in ipairs(COUNTERS) do
    books[i] = MOVING[counter] and text(queue[counter]) or books[i] or '0'
  end
  table.insert(books, 1, name)
  return books
end
