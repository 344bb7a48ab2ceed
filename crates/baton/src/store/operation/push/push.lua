#!lua
-- Purpose: stores a batch of a source and moves its cursor. Not allowed at maxmemory: refused whole.
-- KEYS: 1 root
-- ARGV: 1 session, 2 source, 3 epoch, 4 batch number, 5 cursor it begins at, 6 cursor after it, 7 end (0|1),
--       8 bytes the queue may hold, then a pair for each parcel: messages, parcel (see redis/lua/intake.lua)
-- Returns: OK first … | DUP | STALE | STALEBATON source | GAP cursor batch_no | ENDED source | FULL queue bytes
--          | IDS queue | HELD ms
-- Idempotency: by batch number within the epoch; a number already taken is DUP and changes nothing.
local id, name = ARGV[1], ARGV[2]
local session = visit(id)
local wait = session and held()
if wait then return wait end
local source = call('HMGET', key.source(name), 'queue', 'holder', 'epoch', 'batch_no', 'cursor', 'ended')
if not source[1] then return session and { 'STALEBATON', name } or { 'STALE' } end
if not session or source[2] ~= id or source[3] ~= ARGV[3] then
  -- A fleet under removal must not get a queue back.
  if call('HEXISTS', key.meta, 'destroying') == 0 then
    add(named_queue(source[1]), 'stale_pushes', 1)
    close_queues()
  end
  return session and { 'STALEBATON', name } or { 'STALE' }
end
local batch_no, last, cursor = tonumber(ARGV[4]), tonumber(source[4] or 0), source[5] or ''
if batch_no <= last then return { 'DUP' } end
if batch_no ~= last + 1 or ARGV[5] ~= cursor then return { 'GAP', cursor, text(last) } end
if source[6] == '1' then return { 'ENDED', name } end
local queue = open_queue(source[1])
local count, bytes, weights = 0, 0, {}
for i = 9, #ARGV, 2 do
  weights[i] = weigh(id, ARGV[i + 1])
  count = count + tonumber(ARGV[i])
  bytes = bytes + weights[i]
end
if is_full(queue, bytes, tonumber(ARGV[8])) then return { 'FULL', queue.name, text(queue.bytes) } end
if ids_used_up(queue, count) then return { 'IDS', queue.name } end
local answer = { 'OK' }
for i = 9, #ARGV, 2 do answer[#answer + 1] = text(deposit(id, queue, tonumber(ARGV[i]), ARGV[i + 1], weights[i])) end
call('HSET', key.source(name), 'cursor', ARGV[6], 'batch_no', text(batch_no), 'ended', ARGV[7])
close_queues()
return answer
