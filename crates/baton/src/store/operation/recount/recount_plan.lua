#!lua flags=no-writes
-- Purpose: names what a recount in pages has before it: queues in pages, sessions, the claims of one of them.
-- KEYS: 1 root
-- ARGV: 1 queues, 2 where to go on (0 at first), 3 how many are looked at
--       or 1 sessions
--       or 1 claims, 2 session
-- Returns: OK where to go on (0 at the end) {name …}; a queue may come twice
-- Idempotency: reads only.
if ARGV[1] == 'sessions' then return { 'OK', '0', call('ZRANGE', key.sessions, 0, -1) } end
if ARGV[1] == 'claims' then return { 'OK', '0', call('HKEYS', key.claims(ARGV[2])) } end
local page = call('SSCAN', key.queues, ARGV[2], 'COUNT', ARGV[3])
return { 'OK', page[1], page[2] }
