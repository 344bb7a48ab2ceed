#!lua flags=allow-oom
-- Purpose: forgets a source that no live session offers, its cursor with it.
-- KEYS: 1 root
-- ARGV: 1 source
-- Returns: OK | OFFERED source session | NEWER found known | OLDER found known | DESTROYING
-- Idempotency: a repeat finds nothing to forget.
local unfit = unfit_fleet()
if unfit then return unfit end
local session = offering(ARGV[1], function() return true end)
if session then return { 'OFFERED', ARGV[1], session } end
call('SREM', key.sources, ARGV[1])
call('DEL', key.source(ARGV[1]))
return { 'OK' }
