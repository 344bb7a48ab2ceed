#!lua
-- Purpose: submit.lua for one short message without key and bookmark, as most come. Where nothing speaks against it, by
--          the fewest commands, without the records that other calls build.
-- KEYS: 1 root
-- ARGV: 1 session, 2 submit number, 3 bytes the queue may hold, 4 queue, 5 parcel, 6 the number before this one,
--       7 the place of its answer
-- Returns: its verdict | OK verdicts | STALE | TURN last | HELD ms
-- Idempotency: that of submit.lua, with the same numbers.
call = redis.call
name_keys(KEYS[1])
local submits, submit_no, max_backlog, name, parcel = key.submits(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local place = ARGV[7]
local packed = call('HGET', submits, 'no') == ARGV[6] and call('GET', key.counts(name))
if packed then
  local pushed, ready, delayed, in_flight, done, done_sum, bytes, paused, waiting, held = struct.unpack(COUNTS, packed)
  bytes = bytes + #parcel
  if held == 0 and pushed < MAX_ID and bytes <= max_backlog then
    local first = text(pushed + 1)
    call('RPUSH', key.ready(name), first .. ',1,' .. store_time() .. '|' .. parcel)
    if waiting ~= 0 and paused == 0 then waiting = wake_first(name) end
    call('SET', key.counts(name), struct.pack(COUNTS, pushed + 1, ready + 1, delayed, in_flight, done, done_sum, bytes,
      paused, waiting, held))
    call('HSET', submits, 'no', submit_no, place, submit_no .. ':s' .. first)
    return 's' .. first
  end
end
begin(KEYS[1])
local stored = call('HMGET', submits, 'no', place)
if not stored[1] then return { 'STALE' } end
local queue = known_queue(name)
local wait = held_queue(queue)
if wait then return wait end
if stored[1] ~= ARGV[6] then return answered_before(submit_no, stored[1], stored[2]) end
queue = queue or open_queue(name)
local verdict
if is_full(queue, #parcel, max_backlog) or ids_used_up(queue, 1) then
  verdict = 'f'
else
  local first = text(queue.pushed + 1)
  call('RPUSH', key.ready(name), first .. ',1,' .. text(now) .. '|' .. parcel)
  queue.pushed, queue.ready, queue.bytes = queue.pushed + 1, queue.ready + 1, queue.bytes + #parcel
  wake(queue, 1)
  write_counts(queue)
  verdict = 's' .. first
end
call('HSET', submits, 'no', submit_no, place, submit_no .. ':' .. verdict)
return verdict
