#!lua
-- Purpose: submit.lua for one short message without key and bookmark, as most come, by the fewest commands.
-- KEYS: 1 root
-- ARGV: 1 session, 2 submit number, 3 bytes the queue may hold, 4 queue, 5 parcel
-- Returns: OK verdicts | STALE | TURN last | HELD ms
-- Idempotency: that of submit.lua, with the same numbers.
local submits, submit_no, name, parcel = key.submits(ARGV[1]), tonumber(ARGV[2]), ARGV[4], ARGV[5]
local place = text(math.fmod(submit_no, SUBMIT_WINDOW))
local stored = call('HMGET', submits, 'no', place)
if not stored[1] then return { 'STALE' } end
local queue = known_queue(name)
local wait = held_queue(queue)
if wait then return wait end
if submit_no ~= stored[1] + 1 then return answered_before(ARGV[2], stored[1], stored[2]) end
queue = queue or open_queue(name)
local answer
if is_full(queue, #parcel, tonumber(ARGV[3])) or ids_used_up(queue, 1) then
  answer = 'f'
else
  local first = text(queue.pushed + 1)
  call('RPUSH', key.ready(name), first .. ',1,' .. text(now) .. '|' .. parcel)
  queue.pushed, queue.ready, queue.bytes = queue.pushed + 1, queue.ready + 1, queue.bytes + #parcel
  wake(queue, 1)
  write_counts(queue)
  answer = 's' .. first
end
call('HSET', submits, 'no', ARGV[2], place, ARGV[2] .. ':' .. answer)
return { 'OK', answer }
