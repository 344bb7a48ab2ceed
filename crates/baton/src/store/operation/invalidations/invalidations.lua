#!lua flags=no-writes
-- Purpose: reads what was forgotten after a generation.
-- KEYS: 1 root
-- ARGV: 1 generation
-- Returns: OK generation floor {scope, generation, …} | NEWER found known | OLDER found known
-- Idempotency: reads only.
local unfit = unfit_fleet(true)
if unfit then return unfit end
local generation = cache.generation()
local scopes = call('ZRANGEBYSCORE', key.forgotten, '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, MAX_READ_INVALIDATIONS + 1)
if #scopes > 2 * MAX_READ_INVALIDATIONS then return { 'OK', text(generation), text(generation), {} } end
return { 'OK', text(generation), call('HGET', key.meta, 'floor') or '0', scopes }
