#!lua flags=no-writes
-- Purpose: counts one page of what a recount under a hold has before it.
-- KEYS: 1 root
-- ARGV: 1 ready|suspects|delayed|dead, 2 queue, 3 place to begin at, 4 most descriptors
--       or 1 claims, then sessions
-- Returns: OK descriptors and four as in recount.lua, or for claims OK {queue and such four, …}
-- Idempotency: reads only.
if ARGV[1] == 'claims' then
  local by_queue, answer = {}, {}
  for i = 2, #ARGV do count_claims(ARGV[i], by_queue) end
  for name, of_queue in pairs(by_queue) do
    answer[#answer + 1] = name
    add_found(answer, of_queue)
  end
  return { 'OK', answer }
end
local page = nothing_found()
local seen = count_page(ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), page)
local answer = { 'OK', text(seen) }
add_found(answer, page)
return answer
