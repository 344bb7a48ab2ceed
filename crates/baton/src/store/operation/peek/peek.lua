#!lua flags=no-writes
-- Purpose: reads errors in the order they came.
-- KEYS: 1 root
-- ARGV: 1 queue, 2 after this one, 3 up to and with this one, 4 most errors, 5 most bytes of bodies, headers and error
--       texts
-- Returns: OK {id, record, …}; at least one error whatever its size | NEWER found known | OLDER found known
-- Idempotency: reads only.
local unfit = unfit_fleet(true)
if unfit then return unfit end
local CHUNK = 256
local name, after, limit, max_bytes = ARGV[1], ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5])
local page, bytes, taken = {}, 0, 0
while taken < limit do
  local wanted = math.min(limit - taken, CHUNK)
  local found = call('ZRANGEBYSCORE', key.dead_order(name), '(' .. after, ARGV[3], 'WITHSCORES', 'LIMIT', 0, wanted)
  for i = 1, #found, 2 do
    local record = call('HGET', key.dead(name), found[i])
    local node, past = string.match(record, '^%d+,%d+,%d+,%d+,%d+,(%d+),[%d,]+|()')
    local weight = #record - past + 1 - tonumber(node)
    if bytes > 0 and bytes + weight > max_bytes then return { 'OK', page } end
    bytes = bytes + weight
    page[#page + 1] = found[i]
    page[#page + 1] = record
    after = found[i + 1]
  end
  taken = taken + #found / 2
  if #found < wanted * 2 then break end
end
return { 'OK', page }
