#!lua
-- Purpose: submit.lua for one short message without key and bookmark, as most come. Where nothing speaks against it, by
--          the fewest commands: into the inbox of its queue (inbox.lua), without the records that other calls build.
-- KEYS: 1 submits of the session, 2 counts of the queue, 3 its inbox
-- ARGV: 1 submit number, 2 the number before, 3 the place of its answer, 4 bytes the queue may hold,
--       5 the message as it lies there: `born|parcel`; nothing for born if the sender does not know the store's time
-- Returns: its verdict, with `@now` behind it if the time was not known | OK verdicts | STALE | TURN last | HELD ms
-- Idempotency: that of submit.lua, with the same numbers.
call = redis.call
local submits, submit_no, place, max_backlog, entry = KEYS[1], ARGV[1], ARGV[3], ARGV[4], ARGV[5]
local time = ''
if string.byte(entry) == 124 then
  name_keys(fleet_of(KEYS[2]))
  time = store_time()
  entry, time = string.format('%013d', time) .. entry, '@' .. time
end
local packed = call('HGET', submits, 'no') == ARGV[2] and call('GET', KEYS[2])
if packed then
  local pushed, bytes, waiting, held, inbox = struct.unpack(INTAKE, packed)
  if inbox ~= 0 and held == 0 and bytes <= max_backlog - MAX_INBOX * CARRIED and pushed < EXACT then
    local nth = call('RPUSH', KEYS[3], entry)
    if nth <= MAX_INBOX then
      local verdict = 's' .. pushed + nth
      if waiting ~= 0 and struct.unpack('<d', packed, PAUSED_AT + 1) == 0 then
        name_keys(fleet_of(KEYS[2]))
        if wake_first(queue_of(KEYS[2])) == 0 then call('SETRANGE', KEYS[2], WAITING_AT, struct.pack('<d', 0)) end
      end
      call('HSET', submits, 'no', submit_no, place, submit_no .. ':' .. verdict)
      return verdict .. time
    end
    call('RPOP', KEYS[3])
  end
end
begin(fleet_of(KEYS[2]))
local stored = call('HMGET', submits, 'no', place)
if not stored[1] then return { 'STALE' } end
local name = queue_of(KEYS[2])
local queue = known_queue(name)
local wait = held_queue(queue)
if wait then return wait end
if stored[1] ~= ARGV[2] then return answered_before(submit_no, stored[1], stored[2]) end
queue = open_queue(name)
local bytes, verdict = #entry - BORN, nil
if is_full(queue, bytes, tonumber(max_backlog)) or ids_used_up(queue, 1) then
  verdict = 'f'
else
  local first = queue.pushed + 1
  call('RPUSH', key.ready(name), inbox_entry(first, entry))
  queue.pushed, queue.ready, queue.bytes = first, queue.ready + 1, queue.bytes + bytes
  -- More may come this way.
  queue.inbox = 1
  wake(queue, 1)
  write_counts(queue)
  verdict = 's' .. text(first)
end
call('HSET', submits, 'no', submit_no, place, submit_no .. ':' .. verdict)
return verdict .. time
