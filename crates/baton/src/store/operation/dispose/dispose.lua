#!lua flags=allow-oom
-- Purpose: removes errors: drained for good, or back at the end of their queue.
-- KEYS: 1 root
-- ARGV: 1 session, 2 dispose number, 3 queue, 4 d drain | q requeue, 5 ids `1,2,…`
-- Returns: OK how many | MORE (the bodies were many bytes: the same call goes on) | STALE | TURN last | NOTDRAINER | HELD ms
-- Idempotency: by number; the last answer is kept. Ids that are no errors are passed over. One that goes on finds how many
--              there were before.
local id, dispose_no, name = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local session = visit(id, 'dispose_no', 'dispose', 'disposing')
if not session then return { 'STALE' } end
local wait = held()
if wait then return wait end
local last = tonumber(session[2] or 0)
if dispose_no ~= last + 1 then
  if dispose_no == last and session[3] and not string.find(session[3], ' ') then return { 'OK', session[3] } end
  return { 'TURN', text(last) }
end
if call('HGET', key.queue(name), 'drainer') ~= id then return { 'NOTDRAINER' } end
local before, so_far = string.match(session[4] or '', '^(%d+) (%d+)$')
local queue, count = open_queue(name), before == ARGV[2] and tonumber(so_far) or 0
local is_drain, bytes = ARGV[4] == 'd', 0
for message in string.gmatch(ARGV[5], '%d+') do
  if bytes > REQUEUED_BYTES then
    close_queues()
    call('HSET', key.session(id), 'disposing', ARGV[2] .. ' ' .. text(count))
    return { 'MORE' }
  end
  -- What is drained is not looked at.
  local record = not is_drain and call('HGET', key.dead(name), message)
  local born, node, reason, headers, past
  if record then
    born, node, reason, headers, past = string.match(record, '^%d+,%d+,%d+,(%d+),%d+,(%d+),(%d+),?(%d*)|()')
    -- Where the headers begin, and how many bytes they have.
    past, headers = past + tonumber(node) + tonumber(reason), tonumber(headers) or 0
  end
  -- One without a body cannot run, and stays.
  local has_body = record and past + headers <= #record
  if (has_body or is_drain) and call('HDEL', key.dead(name), message) == 1 then
    count = count + 1
    call('ZREM', key.dead_order(name), message)
    add(queue, 'dead', -1)
    if is_drain then
      add(queue, 'drained', 1)
      add_sum(queue, 'drained_sum', tonumber(message), 1)
    else
      local body = string.sub(record, past + headers)
      local head = head_of(string.sub(record, past, past + headers - 1), body)
      local first = tonumber(message)
      local span = { parcel = first, size = 0, first = first, len = 1, attempts = 0, crashes = 0, born = tonumber(born) }
      give_own(queue, span, head, body)
      bytes = bytes + #record
      add(queue, 'requeued', 1)
      add(queue, 'ready', 1)
      queue.wakes = 1
      call('RPUSH', key.ready(name), write_entry(span))
    end
  end
end
close_queues()
call('HSET', key.session(id), 'dispose_no', ARGV[2], 'dispose', text(count))
return { 'OK', text(count) }
