-- Records of queues: read once a call, changed here, written back once by close_queues(). The counters that most calls
-- use are read together, the others when they are asked for.
local OFTEN = { 'pushed', 'ready', 'delayed', 'in_flight', 'done', 'done_sum', 'bytes', 'paused' }
local opened = nil

-- The record of a queue, or nothing if it was never named.
local function known_queue(name)
  local queue = opened[name]
  if queue then return queue end
  local at = key.queue(name)
  local values = call('HMGET', at, unpack(OFTEN))
  if not values[1] then return nil end
  queue = setmetatable({ name = name, wakes = 0, changed = {} }, {
    __index = function(record, counter)
      record[counter] = tonumber(call('HGET', at, counter) or 0)
      return record[counter]
    end,
  })
  for i, counter in ipairs(OFTEN) do queue[counter] = tonumber(values[i] or 0) end
  opened[name] = queue
  return queue
end

-- The record of a queue, made if this is the first time it is named.
local function open_queue(name)
  local queue = known_queue(name)
  if queue then return queue end
  call('HSET', key.queue(name), 'pushed', '0')
  call('SADD', key.queues, name)
  return known_queue(name)
end

local function add(queue, counter, by)
  queue[counter] = queue[counter] + by
  queue.changed[counter] = true
end

-- (Sum of ids) modulo MODULUS. math.fmod is exact where Lua's % is not; every product stays below 2^53.
local function id_sum(first, len)
  return math.fmod(len * math.fmod(first, MODULUS) + len * (len - 1) / 2, MODULUS)
end

local function add_sum(queue, counter, first, len)
  queue[counter] = math.fmod(queue[counter] + id_sum(first, len), MODULUS)
  queue.changed[counter] = true
end

-- Wakes those that have waited longest for a queue, if the queue has something: puts its name on their lists, after an
-- empty one for the blocking read, which takes what it returns with.
local function wake(queue, count)
  if queue.paused ~= 0 or queue.ready + queue.delayed == 0 then return end
  local waiters = call('ZPOPMIN', key.waiters(queue.name), count)
  for at = 1, #waiters, 2 do call('RPUSH', key.wakes(waiters[at]), '', queue.name) end
end

-- Counts a node among those without a baton that work for its queues (by 1), or no longer (by -1).
local function count_worker(kind, queues, by)
  if kind ~= 'n' then return end
  for name in string.gmatch(queues, '[^,]+') do call('HINCRBY', key.queue(name), 'workers', by) end
end

-- Writes the changed counters back, and wakes as many waiters of each queue as its record says: one, if it was given
-- something.
local function close_queues()
  for name, queue in pairs(opened) do
    local fields = {}
    for counter in pairs(queue.changed) do
      fields[#fields + 1] = counter
      fields[#fields + 1] = text(queue[counter])
    end
    if #fields > 0 then call('HSET', key.queue(name), unpack(fields)) end
    if queue.wakes > 0 then wake(queue, queue.wakes) end
    queue.wakes, queue.changed = 0, {}
  end
end

-- The books of a queue as an answer: its name, then every counter.
local function read_books(name)
  local books = call('HMGET', key.queue(name), unpack(COUNTERS))
  for i = 1, #COUNTERS do books[i] = books[i] or '0' end
  table.insert(books, 1, name)
  return books
end
