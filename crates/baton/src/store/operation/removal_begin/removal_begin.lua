#!lua flags=allow-oom
-- Purpose: makes a session the drainer of a queue's errors unless another live session is.
-- KEYS: 1 root
-- ARGV: 1 session, 2 queue
-- Returns: OK newest error, last dispose number | STALE | DRAINBUSY holder
-- Idempotency: a repeat by the drainer takes a new snapshot.
local session = visit(ARGV[1], 'dispose_no')
if not session then return { 'STALE' } end
local dispose_no = session[2] or '0'
if not known_queue(ARGV[2]) then return { 'OK', '0', dispose_no } end
local queue = call('HMGET', key.queue(ARGV[2]), 'drainer', 'dead_seq')
local holder = alive(queue[1])
if holder and holder ~= ARGV[1] then return { 'DRAINBUSY', holder } end
call('HSET', key.queue(ARGV[2]), 'drainer', ARGV[1])
return { 'OK', queue[2] or '0', dispose_no }
