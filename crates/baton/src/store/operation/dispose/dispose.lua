#!lua flags=allow-oom
-- Purpose: removes errors: drained for good, or back at the end of their queue.
-- KEYS: 1 root
-- ARGV: 1 session, 2 dispose number, 3 queue, 4 d drain | q requeue, 5 ids `1,2,…`
-- Returns: OK how many | STALE | TURN last | NOTDRAINER | HELD ms
-- Idempotency: by number; the last answer is kept. Ids that are no errors are passed over.
local id, dispose_no, name = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local session = visit(id, 'dispose_no', 'dispose')
if not session then return { 'STALE' } end
local wait = held()
if wait then return wait end
local last = tonumber(session[2] or 0)
if dispose_no ~= last + 1 then
  if dispose_no == last and session[3] then return { 'OK', session[3] } end
  return { 'TURN', text(last) }
end
if call('HGET', key.queue(name), 'drainer') ~= id then return { 'NOTDRAINER' } end
local queue, count = known_queue(name), 0
for message in string.gmatch(ARGV[5], '%d+') do
  local record = call('HGET', key.dead(name), message)
  local born, node, reason, headers, past
  if record then
    born, node, reason, headers, past = string.match(record, '^%d+,%d+,%d+,(%d+),%d+,(%d+),(%d+),?(%d*)|()')
    -- Where the headers begin, and how many bytes they have.
    past, headers = past + tonumber(node) + tonumber(reason), tonumber(headers) or 0
  end
  -- One without a body cannot run, and stays.
  local has_body = record and past + headers <= #record
  if record and (ARGV[4] == 'd' or has_body) then
    count = count + 1
    call('HDEL', key.dead(name), message)
    call('ZREM', key.dead_order(name), message)
    add(queue, 'dead', -1)
    if ARGV[4] == 'd' then
      add(queue, 'drained', 1)
      add_sum(queue, 'drained_sum', tonumber(message), 1)
    else
      local parcel = parcel_of(string.sub(record, past, past + headers - 1), string.sub(record, past + headers))
      local first = tonumber(message)
      local piece = { parcel = first, size = 0, first = first, len = 1, attempts = 0, losses = 0, born = tonumber(born) }
      give_own(queue, piece, parcel)
      add(queue, 'requeued', 1)
      add(queue, 'ready', 1)
      queue.wakes = 1
      call('RPUSH', key.ready(name), write_entry(piece))
    end
  end
end
close_queues()
call('HSET', key.session(id), 'dispose_no', ARGV[2], 'dispose', text(count))
return { 'OK', text(count) }
