#!lua flags=no-writes
-- Purpose: reads the books of a queue, and whether a source has ended.
-- KEYS: 1 root
-- ARGV: 1 queue, 2 source ('' none)
-- Returns: OK ended (0|1) {queue, counter …, nothing if it was never named} | NEWER found known | OLDER found known
-- Idempotency: reads only.
local unfit = unfit_fleet(true)
if unfit then return unfit end
local ended = ARGV[2] ~= '' and call('HGET', key.source(ARGV[2]), 'ended') == '1'
return { 'OK', ended and '1' or '0', known_queue(ARGV[1]) and read_books(ARGV[1]) or {} }
