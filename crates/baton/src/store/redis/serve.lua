#!lua flags=allow-oom
-- Purpose: takes the names off a session's wake-up list and carries out the claims that wait for these queues. Claims
--          that came to wait since the last time are handed in with it, and wait on if they are not carried out now.
--          It runs when the read before it ends, whether or not its session still lives: it shows nothing of that.
-- KEYS: 1 root
-- ARGV: 1 session, then four for each claim that came: queue, claim number, most messages, most body bytes
-- Returns: OK {names whose claims were not carried out} {four for each claim that was: claim number, then the three
--          that claim.lua returns after OK} | what claim.lua returns by its short way | STALE
-- Idempotency: none: after a lost reply whoever waits claims under its own number, which gives what is held under it.

-- The most names taken at once, each after an empty one; and spans given before the names that are left are only told.
local SERVED = 32
local ENOUGH = 128
call = redis.call
name_keys(KEYS[1])
local id = ARGV[1]
local popped = call('LPOP', key.wakes(id), SERVED) or {}
-- Most are woken for one queue, and wait for no other.
if #popped == 1 and #ARGV == 5 and popped[1] == ARGV[2] then
  local numbers = call('HGET', key.session(id), 'c:' .. ARGV[2])
  local short = numbers and claim_inbox(id, ARGV[2], numbers, ARGV[3], ARGV[4], ARGV[5])
  if short then return short end
end
begin(KEYS[1])
local came, fields = {}, {}
for at = 2, #ARGV, 4 do
  came[ARGV[at]] = ARGV[at + 1] .. ':' .. ARGV[at + 2] .. ':' .. ARGV[at + 3]
  fields[#fields + 1] = 'c:' .. ARGV[at]
end
local woken, seen = {}, {}
for _, name in ipairs(popped) do
  if name ~= '' and not seen[name] then
    seen[name], woken[#woken + 1] = true, name
    if not came[name] then fields[#fields + 1] = 'c:' .. name end
  end
end
local record = visit(id, 'suspects', unpack(fields))
if not record then return { 'STALE' } end
local session, numbers = { id = id, suspects = tonumber(record[2] or 0) }, {}
for at, field in ipairs(fields) do
  numbers[string.sub(field, 3)] = read_numbers(record[at + 2])
end

local suspects, names, served, changed = session.suspects, {}, {}, {}
local is_held, spent = held(), 0
for _, name in ipairs(woken) do
  local its = numbers[name]
  local claim_no, n, budget = string.match(came[name] or its.parked, '^(%d+):(%d+):(%d+)$')
  claim_no = tonumber(claim_no)
  if is_held or spent >= ENOUGH or not claim_no or refused_number(its, claim_no) then
    names[#names + 1] = name
  else
    local at = #served
    local rest, given, written, cost = claim_messages(session, name, its, claim_no, tonumber(n), tonumber(budget))
    served[at + 1], served[at + 2], served[at + 3], served[at + 4] = text(claim_no), name, rest, given
    spent = spent + cost
    changed[name] = written or its.parked ~= ''
    its.parked, came[name] = '', nil
  end
end
for name, parked in pairs(came) do
  numbers[name].parked, changed[name] = parked, true
end
local writes = {}
for name in pairs(changed) do
  writes[#writes + 1], writes[#writes + 2] = 'c:' .. name, write_numbers(numbers[name])
end
if session.suspects ~= suspects then
  writes[#writes + 1], writes[#writes + 2] = 'suspects', text(session.suspects)
end
if #writes > 0 then call('HSET', key.session(id), unpack(writes)) end
return { 'OK', names, served }
