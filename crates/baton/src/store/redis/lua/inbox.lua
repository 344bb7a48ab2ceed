-- The inbox of a queue: short messages that were pushed one by one and lie behind all that is ready, each as `born|parcel`.
-- Their ids follow the last one in the books, which do not count them yet. Claims take them from its front. Whoever puts
-- something behind them takes them in first: counts them and moves them to the end of the line, so that line and inbox
-- together stay the same sequence. Who only reads counts them as if it had.

-- Whether this call only reads.
local reads = nil
-- The bytes of an entry before its parcel: thirteen digits and the bar.
local BORN = 14

-- One of the inbox as it lies in the line.
local function inbox_entry(id, entry)
  return text(id) .. ',1,' .. entry
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
  for nth, entry in ipairs(entries) do
    bytes = bytes + #entry - BORN
    entries[nth] = inbox_entry(queue.pushed + nth, entry)
  end
  queue.pushed, queue.ready, queue.bytes = queue.pushed + #entries, queue.ready + #entries, queue.bytes + bytes
  if not reads then
    call('RPUSH', key.ready(queue.name), unpack(entries))
    call('DEL', key.inbox(queue.name))
    write_counts(queue)
  end
  return queue
end
