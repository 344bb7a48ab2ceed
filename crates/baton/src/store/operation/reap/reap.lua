#!lua flags=allow-oom
-- Purpose: takes back what a session past its lease holds, with a loss counted for each message.
-- KEYS: 1 root
-- ARGV: 1 session that asks, 2 session to be reaped
-- Returns: OK back dead | ALIVE | GONE | STALE | HELD ms
-- Idempotency: a repeat finds the session gone.
if not visit(ARGV[1]) then return { 'STALE' } end
local wait, clock = held(), advance()
if wait then return wait end
local target = ARGV[2]
local record = call('HMGET', key.session(target), 'lease', 'host', 'pid')
if not record[1] then return { 'GONE' } end
if tonumber(call('ZSCORE', key.sessions, target)) > clock then return { 'ALIVE' } end
local back, dead = return_all(target, record[2] .. '/' .. record[3], true)
drop_session(target)
close_queues()
return { 'OK', text(back), text(dead) }
