-- Errors. A record is `seq,attempts,losses,born,at,length of node,length of error|node error body`, with the
-- length of the headers as an eighth number and the headers before the body if there are some. The body of one that was
-- missing is empty.

-- Moves the messages of a piece to the errors; close_queues() writes their records.
local function bury(queue, piece, node, reason)
  queue.buried = queue.buried or {}
  local buried = queue.buried
  local function keep(id, _, body, headers)
    add(queue, 'dead_seq', 1)
    local head = string.format('%d,%d,%d,%d,%d,%d,%d',
      queue.dead_seq, piece.attempts, piece.losses, piece.born, now, #node, #reason)
    if headers == NO_HEADERS then headers = '' end
    if headers ~= '' then head = head .. ',' .. #headers end
    local at, place = #buried, text(id)
    buried[at + 1], buried[at + 2], buried[at + 3] = text(queue.dead_seq), place, head .. '|' .. node .. reason .. headers .. body
  end
  if not each_message(queue.name, piece, keep) then
    for id = piece.first, piece.first + piece.len - 1 do keep(id, nil, '', '') end
  end
  add(queue, 'in_flight', -piece.len)
  add(queue, 'dead', piece.len)
  release(queue, piece)
  if piece.part then calls.ended(queue.name, piece, 'x', reason) end
end
