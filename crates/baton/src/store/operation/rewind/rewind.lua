#!lua flags=allow-oom
-- Purpose: resets the cursor, the end and the definition of a source without a live holder, or its end alone.
-- KEYS: 1 root
-- ARGV: 1 source, 2 whether it goes on at its cursor (0|1): then nothing is done unless it has ended
-- Returns: OK | BATON source holder | NEWER found known | OLDER found known | DESTROYING
-- Idempotency: a repeat changes nothing.
local unfit = unfit_fleet()
if unfit then return unfit end
local source = key.source(ARGV[1])
local goes_on = ARGV[2] == '1'
if call('EXISTS', source) == 0 or goes_on and call('HGET', source, 'ended') ~= '1' then return { 'OK' } end
local holder = alive(call('HGET', source, 'holder'))
if holder then return { 'BATON', ARGV[1], holder } end
call('HDEL', source, 'holder', 'ended')
if not goes_on then call('HDEL', source, 'definition', 'cursor', 'batch_no') end
return { 'OK' }
