#!lua flags=no-writes
-- Purpose: counts one page of what a recount under a hold has before it.
-- KEYS: 1 root
-- ARGV: 1 ready|suspects|delayed|dead, 2 queue, 3 place to begin at, 4 most descriptors
--       or 1 queues|sessions, 2 most descriptors, then names
--       or 1 claims, 2 most descriptors, 3 session, then claims
-- Returns: of a queue's kind OK descriptors and five as in recount.lua
--          of queues OK passed {{queue, counter …}, five for each of ready, delayed, dead} …; those that are gone are
--          passed and not told; the first, if it is too large by itself, is told alone and with its books only
--          of sessions and claims OK passed {queue and five, …}; a session that is too large by itself is not passed
-- Idempotency: reads only.
local kind, limit = ARGV[1], tonumber(ARGV[2])
if kind == 'sessions' or kind == 'claims' then
  local by_queue, answer, passed, seen = {}, {}, 0, 0
  for at = kind == 'claims' and 4 or 3, #ARGV do
    if kind == 'claims' then
      seen = seen + count_claim(ARGV[3], ARGV[at], by_queue)
    else
      seen = seen + claimed_descriptors(ARGV[at])
      if seen > limit then break end
      count_claims(ARGV[at], by_queue)
    end
    passed = passed + 1
    if seen >= limit then break end
  end
  for name, of_queue in pairs(by_queue) do
    answer[#answer + 1] = name
    add_found(answer, of_queue)
  end
  return { 'OK', text(passed), answer }
end
if kind == 'queues' then
  local answer, seen = { 'OK', '0' }, 0
  for at = 3, #ARGV do
    local name = ARGV[at]
    if known_queue(name) then
      seen = seen + stored_descriptors(name)
      if seen > limit and at > 3 then break end
      local queue = { read_books(name) }
      if seen <= limit then
        for _, counted in ipairs({ count_stored(name) }) do add_found(queue, counted) end
      end
      answer[#answer + 1] = queue
    end
    answer[2] = text(at - 2)
    if seen > limit then break end
  end
  return answer
end
local page = nothing_found()
local seen = count_page(kind, ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), page)
local answer = { 'OK', text(seen) }
add_found(answer, page)
return answer
