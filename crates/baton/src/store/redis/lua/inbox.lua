-- The inbox of a queue: short messages that were pushed one by one and lie behind all that is ready, each as `born|parcel`.
-- Their ids follow the last one in the books. The next call that writes and reads the books takes them in: counts them
-- and puts them at the end of the line, so that line and inbox together stay the same sequence. A call that only reads
-- counts them as if it had.

-- Whether this call only reads.
local reads = nil

-- One of the inbox as it lies in the line.
local function inbox_entry(id, entry)
  return text(id) .. ',1,' .. entry
end

local function take_in(queue)
  local entries, bytes = call('LRANGE', key.inbox(queue.name), 0, -1), 0
  if #entries == 0 then return end
  for nth, entry in ipairs(entries) do
    bytes = bytes + #entry - string.find(entry, '|', 1, true)
    entries[nth] = inbox_entry(queue.pushed + nth, entry)
  end
  queue.pushed, queue.ready, queue.bytes = queue.pushed + #entries, queue.ready + #entries, queue.bytes + bytes
  if reads then return end
  call('RPUSH', key.ready(queue.name), unpack(entries))
  call('DEL', key.inbox(queue.name))
  write_counts(queue)
end
