-- The inbox of a queue: short messages that were pushed one by one and lie behind all that is ready, each as `born|parcel`.
-- Their ids follow the last one in the books, which do not count them yet. Claims take them from its front. Whoever puts
-- something behind them takes them in first: counts them and moves them to the end of the line as one entry, a bundle.
-- Who only reads counts them as if it had.

-- Whether this call only reads.
local reads = nil
-- The bytes of an entry before its parcel: thirteen digits and the bar.
local BORN = 14

-- One of the inbox as it lies in the line.
local function inbox_entry(id, entry)
  return text(id) .. ',1,' .. entry
end

-- Several as one entry of the line: `*first,messages,bytes|` and each behind the other; the bytes of each one, if they
-- differ, or of all.
local function write_bundle(first, entries)
  local lengths, differ = {}, false
  for nth, entry in ipairs(entries) do
    lengths[nth] = #entry
    differ = differ or #entry ~= lengths[1]
  end
  local head = string.format('*%d,%d,', first, #entries) .. (differ and table.concat(lengths, ';') or text(lengths[1])) .. '|'
  -- In one go: each text that is made on the way is hashed byte by byte. No more than MAX_INBOX, so they fit on the stack.
  return table.concat({ head, unpack(entries) })
end

-- How a bundle begins: the first id, the messages, the bytes, where the entries begin.
local BUNDLE = '^%*(%d+),(%d+),([%d;]+)|()'

local function is_bundle(entry)
  return string.byte(entry) == 42
end

-- The first id of a bundle, and its entries, at most so many. `rest` gives what is left behind the first of them, not
-- read any further; nothing if that is nothing.
local function read_bundle(written, most)
  local first, count, lengths, at = string.match(written, BUNDLE)
  first, count = tonumber(first), tonumber(count)
  local entries, each, places, behind = {}, tonumber(lengths), { at }, {}
  local next_length = not each and string.gmatch(lengths, '(%d+);?()')
  for nth = 1, math.min(count, most) do
    local length = each
    if not each then length, behind[nth] = next_length() end
    local past = places[nth] + length
    entries[nth], places[nth + 1] = string.sub(written, places[nth], past - 1), past
  end
  local function rest(taken)
    if taken == count then return nil end
    if taken == 0 then return written end
    return string.format('*%d,%d,', first + taken, count - taken)
      .. (each and lengths or string.sub(lengths, behind[taken])) .. '|' .. string.sub(written, places[taken + 1])
  end
  return first, entries, rest
end

-- Whether something is ready, in the inbox too.
local function has_ready(queue)
  return queue.ready > 0 or queue.inbox ~= 0 and call('EXISTS', key.inbox(queue.name)) == 1
end

-- The record of a queue with what is in its inbox.
local function take_in(queue)
  if queue.inbox == 0 or queue.taken_in then return queue end
  local entries, bytes = call('LRANGE', key.inbox(queue.name), 0, -1), 0
  queue.taken_in = #entries
  if #entries == 0 then return queue end
  for _, entry in ipairs(entries) do bytes = bytes + #entry - BORN end
  local first = queue.pushed + 1
  queue.pushed, queue.ready, queue.bytes = queue.pushed + #entries, queue.ready + #entries, queue.bytes + bytes
  if not reads then
    call('RPUSH', key.ready(queue.name), #entries == 1 and inbox_entry(first, entries[1]) or write_bundle(first, entries))
    call('DEL', key.inbox(queue.name))
    write_counts(queue)
  end
  return queue
end
