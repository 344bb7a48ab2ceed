-- The inbox of a queue: short messages that were pushed one by one and lie behind all that is ready, each as `born|parcel`.
-- Their ids follow the last one in the books, which do not count them yet. The name of the list ends with that id, behind
-- the time from which the queue may have one: so a list of that name is the inbox or there is none. Whoever moves the books
-- past it takes it away or names it anew. Claims take from
-- its front. Whoever puts something behind it takes it in first: counts what is there, and has it stand in the line as one
-- entry, a bundle, over the same list under another name. Under a hold there is none. Who only reads counts it as if it had
-- been taken in.

-- Whether this call only reads.
local reads = nil
-- The bytes of an entry before its parcel: thirteen digits and the bar.
local BORN = 14
-- So few lie in the line by themselves: a bundle has a key of its own.
local TAKEN_SINGLY = 4

-- Where single pushes go, by the counters of their queue (ways.lua): the name of an inbox and the id that it ends with; while
-- `count` is the length of that list, `bytes` is what its parcels have; `open` if nothing but the bound speaks against one
-- more, and `stored` for how much the queue counted then. This is what was seen last and may be out of date: it saves a
-- look where it is right, and nothing is written before that is known. That a list of that name exists tells that the id is
-- right, that nothing holds the queue and that the line has not grown since; its length tells whether the bytes are.
local boxes = {}

-- Something may have changed that speaks against one more.
local function close_box(name)
  local box = boxes[key.counts(name)]
  if box then box.open = false end
end

-- One of the inbox as it lies in the line.
local function inbox_entry(id, entry)
  return text(id) .. ',1,' .. entry
end

-- A bundle as it lies in the line: its first id, messages, bytes of their parcels, and what its list is called by.
local BUNDLE = '^%*(%d+),(%d+),(%d+),(%d+)$'
local function write_bundle(first, count, bytes, home)
  return string.format('*%d,%d,%d,', first, count, bytes) .. home
end

local function is_bundle(entry)
  return string.byte(entry) == 42
end

local function read_bundle(entry)
  local first, count, bytes, home = string.match(entry, BUNDLE)
  if not first then error({ err = 'DAMAGED unreadable bundle ' .. string.sub(entry, 1, 80) }) end
  return tonumber(first), tonumber(count), tonumber(bytes), home
end

local function weigh_entries(entries)
  local bytes = 0
  for _, entry in ipairs(entries) do bytes = bytes + #entry - BORN end
  return bytes
end

-- Whether something is ready, in the inbox too.
local function has_ready(queue)
  return queue.ready > 0 or queue.inbox ~= 0 and call('EXISTS', key.inbox(queue.name, queue.inbox, queue.pushed)) == 1
end

-- The record of a queue with what is in its inbox.
local function take_in(queue)
  if queue.inbox == 0 or queue.taken_in then return queue end
  local name, from, first = queue.name, key.inbox(queue.name, queue.inbox, queue.pushed), queue.pushed + 1
  local count, box = call('LLEN', from), boxes[key.counts(name)]
  queue.taken_in = count
  if count == 0 then return queue end
  local is_known = box and box.key == from and box.count == count
  local entries = (count <= TAKEN_SINGLY or not is_known) and call('LRANGE', from, 0, -1)
  local bytes = is_known and box.bytes or weigh_entries(entries)
  queue.pushed, queue.ready, queue.bytes = queue.pushed + count, queue.ready + count, queue.bytes + bytes
  if reads then return queue end
  if count <= TAKEN_SINGLY then
    for nth, entry in ipairs(entries) do entries[nth] = inbox_entry(first + nth - 1, entry) end
    call('RPUSH', key.ready(name), unpack(entries))
    call('DEL', from)
  else
    local home = text(first)
    call('RENAME', from, key.bundle(name, home))
    call('RPUSH', key.ready(name), write_bundle(first, count, bytes, home))
  end
  write_counts(queue)
  return queue
end

-- Names anew what claims have left of an inbox, so many of which, of so many bytes, are counted now; how many are left.
local function pass_inbox(name, since, pushed, taken, bytes)
  local from, past = key.inbox(name, since, pushed), pushed + taken
  local left, box = call('LLEN', from), boxes[key.counts(name)]
  if left == 0 then return 0 end
  local to = key.inbox(name, since, past)
  call('RENAME', from, to)
  if box and box.key == from and box.count == taken + left then
    box.key, box.before, box.count, box.bytes = to, past, left, box.bytes - bytes
  end
  return left
end
