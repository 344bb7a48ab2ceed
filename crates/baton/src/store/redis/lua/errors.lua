-- Errors. A record is `seq,attempts,crashes,born,at,length of node,length of error|node error body`, with the
-- length of the headers as an eighth number and the headers before the body if there are some. The body of one that was
-- missing is empty.

-- Moves the messages of a span to the errors; close_queues() writes their records.
local function bury(queue, span, node, reason)
  queue.buried = queue.buried or {}
  local buried = queue.buried
  local function keep(id, _, body, headers)
    add(queue, 'dead_seq', 1)
    local head = string.format('%d,%d,%d,%d,%d,%d,%d',
      queue.dead_seq, span.attempts, span.crashes, span.born, now, #node, #reason)
    if headers == NO_HEADERS then headers = '' end
    if headers ~= '' then head = head .. ',' .. #headers end
    local at, place = #buried, text(id)
    buried[at + 1], buried[at + 2], buried[at + 3] = text(queue.dead_seq), place, head .. '|' .. node .. reason .. headers .. body
  end
  if not each_message(queue.name, span, keep) then
    for id = span.first, span.first + span.len - 1 do keep(id, nil, '', '') end
  end
  add(queue, 'in_flight', -span.len)
  add(queue, 'dead', span.len)
  release(queue, span)
  if span.role then calls.ended(queue.name, span, 'x', reason) end
end
