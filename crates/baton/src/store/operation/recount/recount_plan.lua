#!lua flags=no-writes
-- Purpose: what a recount in pages has before it: the ledger under the hold, and the sessions whose claims count.
-- KEYS: 1 root
-- ARGV: none
-- Returns: OK {{queue, counter …} …} {session …}
-- Idempotency: reads only.
local queues = {}
for i, name in ipairs(call('SMEMBERS', key.queues)) do queues[i] = read_books(name) end
return { 'OK', queues, call('ZRANGE', key.sessions, 0, -1) }
