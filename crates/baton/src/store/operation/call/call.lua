#!lua flags=no-writes
-- Purpose: tells how a call stands.
-- KEYS: 1 root
-- ARGV: 1 call
-- Returns: OK state (waiting|delayed|running|cancelling|done|dead|cancelled) its birth, first event kept, number of the
--          next, then its outcome once it has ended with one | NONE | OTHERCALL | NEWER found known | OLDER found known
-- Idempotency: reads only.
local unfit = unfit_fleet(true)
if unfit then return unfit end
local record, other = calls.named(ARGV[1])
if not record then return other or { 'NONE' } end
local state = 'waiting'
if record.ended ~= 0 then
  state = record.ended == 1 and 'done' or record.ended == 2 and 'dead' or 'cancelled'
elseif record.marked == 1 then
  state = 'cancelling'
elseif record.running > 0 then
  state = 'running'
elseif record.delayed == record.open then
  state = 'delayed'
end
local answer = { 'OK', state, text(record.born), text(record.first), text(record.next) }
if record.ended ~= 0 then answer[6] = call('HGET', key.call(record.name), 'outcome') or nil end
return answer
