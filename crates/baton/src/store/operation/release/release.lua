#!lua flags=allow-oom
-- Purpose: gives up the right to compute the value of a key; wakes those who wait for it.
-- KEYS: 1 root
-- ARGV: 1 session, 2 key, 3 number of the right to compute
-- Returns: OK | STALE
-- Idempotency: one that does not have the right changes nothing.
if not visit(ARGV[1]) then return { 'STALE' } end
local compute_right = cache.compute_right(ARGV[2])
if compute_right and compute_right.session == ARGV[1] and compute_right.number == ARGV[3] then cache.end_compute_right(ARGV[2], ARGV[1]) end
return { 'OK' }
