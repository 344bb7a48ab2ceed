#!lua flags=allow-oom
-- Purpose: notes which run of the server the fleet is in.
-- KEYS: 1 root
-- ARGV: 1 run id
-- Returns: OK 1 for the first to notice that the server was restarted, else 0
-- Idempotency: the same run is noted once.
local before = call('HGET', key.meta, 'run')
if before == ARGV[1] then return { 'OK', '0' } end
call('HSET', key.meta, 'run', ARGV[1])
return { 'OK', before and '1' or '0' }
