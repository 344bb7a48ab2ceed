#!lua flags=allow-oom
-- Purpose: holds the store still for a recount: calls that move messages answer HELD until the hold ends.
-- KEYS: 1 root
-- ARGV: 1 begin|extend|release, 2 who holds, 3 ms until the hold ends by itself
-- Returns: OK | HELD ms (another one holds) | LOST (the hold ended: messages may have moved)
-- Idempotency: begin and extend by the holder move the end; release of what is not held changes nothing.
local function mark_queues(held)
  local mark = struct.pack('<d', held)
  for _, name in ipairs(call('SMEMBERS', key.queues)) do call('SETRANGE', key.counts(name), HELD_AT, mark) end
end
local from, upto, by = string.match(call('GET', key.hold) or '0 0 ', '^(%d+) (%d+) (.*)$')
local left, mine = tonumber(upto) - now, by == ARGV[2]
-- As in redis/lua/clock.lua: a hold of before the clock was set back is over.
if tonumber(from) > now then left = 0 end
if ARGV[1] == 'release' then
  if mine then
    call('DEL', key.hold)
    mark_queues(0)
  end
  return { 'OK' }
end
if left > 0 and not mine then return { 'HELD', text(left) } end
if ARGV[1] == 'extend' and (left <= 0 or not mine) then return { 'LOST' } end
if ARGV[1] == 'begin' then mark_queues(1) end
-- Nobody looks at it for long once it is over.
call('SET', key.hold, text(now) .. ' ' .. text(now + tonumber(ARGV[3])) .. ' ' .. ARGV[2], 'PX', tonumber(ARGV[3]) + 60000)
return { 'OK' }
