#!lua flags=allow-oom
-- Purpose: holds the store still for a recount: calls that move messages answer HELD until the hold ends.
-- KEYS: 1 root
-- ARGV: 1 begin|extend|release, 2 who holds, 3 ms until the hold ends by itself, then with extend queues that are to know
--       of it: only once all of them do messages stand still
-- Returns: OK | HELD ms (another one holds) | REST ms (one has just ended: whoever waited for that goes first)
--          | LOST (the hold ended: messages may have moved)
-- Idempotency: begin and extend by the holder move the end; release of what is not held changes nothing.
local from, upto, by = string.match(call('GET', key.hold) or '0 0 ', '^(%d+) (%d+) (.*)$')
local left, mine = tonumber(upto) - now, by == ARGV[2]
-- As in redis/lua/clock.lua: a hold of before the clock was set back is over.
if tonumber(from) > now then left = 0 end
if ARGV[1] == 'release' then
  -- Queues find out by themselves that there is none.
  if mine then call('SET', key.hold, text(now) .. ' ' .. text(now) .. ' rest', 'PX', REST_MS) end
  return { 'OK' }
end
if left > 0 and not mine then return { 'HELD', text(left) } end
local rests = ARGV[1] == 'begin' and by == 'rest' and call('PTTL', key.hold) or 0
if rests > 0 then return { 'REST', text(rests) } end
if ARGV[1] == 'extend' and (left <= 0 or not mine) then return { 'LOST' } end
for i = 4, #ARGV do
  -- One that is gone must not come back. Singles are pushed without a look at this only while there is an inbox.
  local queue = known_queue(ARGV[i])
  if queue then
    take_in(queue)
    call('SETRANGE', key.counts(ARGV[i]), HELD_AT, struct.pack('<d', 1))
  end
end
-- Nobody looks at it for long once it is over.
call('SET', key.hold, text(now) .. ' ' .. text(now + tonumber(ARGV[3])) .. ' ' .. ARGV[2], 'PX', tonumber(ARGV[3]) + 60000)
return { 'OK' }
