#!lua flags=no-writes
-- Purpose: reads events of a call.
-- KEYS: 1 root
-- ARGV: 1 call, 2 first event wanted, 3 most bytes
-- Returns: OK first, number of the next one told, 1 if the call has ended, {events} | NOCALL | OTHERCALL | GONE first kept
--          | NEWER found known | OLDER found known
-- Idempotency: reads only.
local unfit = unfit_fleet(true)
if unfit then return unfit end
local record, from, events = calls.page(ARGV[1], ARGV[2], ARGV[3])
if not record then return from end
return { 'OK', text(from), text(record.next), record.ended ~= 0 and '1' or '', events }
