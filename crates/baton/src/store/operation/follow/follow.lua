#!lua flags=allow-oom
-- Purpose: reads events of a call, and notes that the session follows it.
-- KEYS: 1 root
-- ARGV: 1 session, 2 call, 3 first event wanted, 4 number it is woken with, 5 most bytes
-- Returns: OK first, number of the next one told, 1 if the call has ended, {events} | STALE | NOCALL | OTHERCALL
--          | GONE first kept
-- Idempotency: a repeat reads again.
if not visit(ARGV[1]) then return { 'STALE' } end
local record, from, events = calls.page(ARGV[2], ARGV[3], ARGV[5])
if not record then return from end
local waits = #events == 0 and record.ended == 0
call('HSET', key.followers(record.name), ARGV[1], text(from) .. ',' .. ARGV[4] .. ',' .. (waits and '1' or '0'))
call('HSET', key.call(record.name), 'followed', text(now))
if record.linger > 0 and record.open > 0 and record.marked == 0 then
  call('ZADD', key.looks, text(now + record.linger - 1), record.name)
end
return { 'OK', text(from), text(record.next), record.ended ~= 0 and '1' or '', events }
