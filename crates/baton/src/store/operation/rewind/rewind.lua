#!lua flags=allow-oom
-- Purpose: resets the cursor, the end and the definition of a source that nobody holds.
-- KEYS: 1 root
-- ARGV: 1 source
-- Returns: OK | BATON source holder | NEWER found known | OLDER found known | DESTROYING
-- Idempotency: a repeat changes nothing.
local unfit = unfit_fleet()
if unfit then return unfit end
local source = key.source(ARGV[1])
if call('EXISTS', source) == 0 then return { 'OK' } end
local holder = alive(call('HGET', source, 'holder'))
if holder then return { 'BATON', ARGV[1], holder } end
call('HDEL', source, 'holder', 'definition', 'cursor', 'batch_no', 'ended')
return { 'OK' }
