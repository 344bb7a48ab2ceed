#!lua flags=no-writes
-- Purpose: reads a result kept by a settle.
-- KEYS: 1 root
-- ARGV: 1 queue, 2 id
-- Returns: OK result | NONE | NEWER found known | OLDER found known
-- Idempotency: reads only.
local unfit = unfit_fleet(true)
if unfit then return unfit end
if #ARGV[2] > 16 then return { 'NONE' } end
local kept = call('HGET', key.results, ARGV[1] .. ' ' .. padded(ARGV[2]))
if not kept then return { 'NONE' } end
local colon = string.find(kept, ':', 1, true)
if tonumber(string.sub(kept, 1, colon - 1)) <= now then return { 'NONE' } end
return { 'OK', string.sub(kept, colon + 1) }
