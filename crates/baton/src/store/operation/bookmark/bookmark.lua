#!lua flags=no-writes
-- Purpose: reads where a bookmark stands.
-- KEYS: 1 root
-- ARGV: 1 key
-- Returns: OK place `lines,digest` ('' at the start) | NEWER found known | OLDER found known
-- Idempotency: reads only.
local unfit = unfit_fleet(true)
if unfit then return unfit end
return { 'OK', string.match(call('HGET', key.marks, ARGV[1]) or '', '^%d+,[^,]*') or '' }
