#!lua flags=no-writes
-- Purpose: reads the books of a queue, when the first of its delayed messages is due, and whether a source has ended.
-- KEYS: 1 root
-- ARGV: 1 queue, 2 source ('' none)
-- Returns: OK ended (0|1) due ('' if none is delayed) {queue, counter …, nothing if it was never named} | NEWER found known | OLDER found known
-- Idempotency: reads only.
local unfit = unfit_fleet(true)
if unfit then return unfit end
local ended = ARGV[2] ~= '' and call('HGET', key.source(ARGV[2]), 'ended') == '1'
local first = call('ZRANGE', key.delayed(ARGV[1]), 0, 0, 'WITHSCORES')
return { 'OK', ended and '1' or '0', first[2] and text(tonumber(first[2])) or '', known_queue(ARGV[1]) and read_books(ARGV[1]) or {} }
