#!lua flags=allow-oom
-- Purpose: gives up the right to compute the value of a key; wakes those who wait for it.
-- KEYS: 1 root
-- ARGV: 1 session, 2 key, 3 number of the flight
-- Returns: OK | STALE
-- Idempotency: one that does not have the right changes nothing.
if not visit(ARGV[1]) then return { 'STALE' } end
local flight = recalls.flight(ARGV[2])
if flight and flight.session == ARGV[1] and flight.number == ARGV[3] then recalls.end_flight(ARGV[2], ARGV[1]) end
return { 'OK' }
