#!lua
-- Purpose: submit.lua for one short message without key and bookmark, as most come. Where nothing speaks against it, by
--          the fewest commands and arguments: into the inbox of its queue (inbox.lua), without the records that other calls
--          build.
-- KEYS: 1 `submits of the session queue bytes the queue may hold`, which are the same for all that a session pushes to a
--       queue (ways.lua)
-- ARGV: 1 submit number, 2 the message as it lies there: `born|parcel`; nothing for born if the sender does not know the
--       store's time
-- Returns: `submit number:verdict`, with `@now` behind it if the time was not known | OK verdicts | STALE | TURN last | HELD ms
-- Idempotency: that of submit.lua, with the same numbers.
call = redis.call
local way, submit_no, entry, time = ways[KEYS[1]] or find_way(KEYS[1]), ARGV[1], ARGV[2], ''
local number = tonumber(submit_no)
if string.byte(entry) == 124 then
  name_keys(way.fleet)
  time = store_time()
  entry, time = string.format('%013d', time) .. entry, '@' .. time
end
local place = places[number % SUBMIT_WINDOW] or find_place(number % SUBMIT_WINDOW)
local last = call('HGET', way.submits, 'no')
local packed = last and last + 1 == number and call('GET', way.counts)
if packed then
  local pushed, bytes, waiting, held, inbox = struct.unpack(INTAKE, packed)
  if inbox ~= 0 and held == 0 and bytes <= way.near and pushed < EXACT then
    local nth = call('RPUSH', way.inbox, entry)
    if nth <= MAX_INBOX then
      if waiting ~= 0 and struct.unpack('<d', packed, PAUSED_AT + 1) == 0 then
        name_keys(way.fleet)
        if wake_first(way.queue) == 0 then call('SETRANGE', way.counts, WAITING_AT, struct.pack('<d', 0)) end
      end
      local answer = submit_no .. ':s' .. pushed + nth
      call('HSET', way.submits, 'no', submit_no, place, answer)
      return time == '' and answer or answer .. time
    end
    call('RPOP', way.inbox)
  end
end
begin(way.fleet)
local stored = call('HMGET', way.submits, 'no', place)
if not stored[1] then return { 'STALE' } end
local queue = known_queue(way.queue)
local wait = held_queue(queue)
if wait then return wait end
if stored[1] + 1 ~= number then return answered_before(submit_no, stored[1], stored[2]) end
queue = open_queue(way.queue)
local bytes, verdict = #entry - BORN, nil
if is_full(queue, bytes, way.bound) or ids_used_up(queue, 1) then
  verdict = 'f'
else
  local first = queue.pushed + 1
  call('RPUSH', key.ready(way.queue), inbox_entry(first, entry))
  queue.pushed, queue.ready, queue.bytes = first, queue.ready + 1, queue.bytes + bytes
  -- More may come this way.
  queue.inbox = 1
  wake(queue, 1)
  write_counts(queue)
  verdict = 's' .. text(first)
end
local answer = submit_no .. ':' .. verdict
call('HSET', way.submits, 'no', submit_no, place, answer)
return answer .. time
