#!lua flags=no-writes
-- Purpose: counts the data itself in one step, if there is not too much of it.
-- KEYS: 1 root
-- ARGV: 1 most descriptors to count
-- Returns: OK {{{queue, counter …}, five for each of ready, delayed, in flight, dead} …} | LARGE | NEWER found known | OLDER found known
--          The five are messages, their sum, the bytes they count for, how many of them lack their bodies, the lowest of these or 0.
-- Idempotency: reads only.
local unfit = unfit_fleet(true)
if unfit then return unfit end
local most = tonumber(ARGV[1])
-- What a queue and a session cost by themselves, as so many descriptors.
local descriptors = 50 * call('SCARD', key.queues) + 10 * call('ZCARD', key.sessions)
if descriptors > most then return { 'LARGE' } end
local names, members = call('SMEMBERS', key.queues), call('ZRANGE', key.sessions, 0, -1)
for _, name in ipairs(names) do descriptors = descriptors + stored_descriptors(name) end
for _, id in ipairs(members) do
  if descriptors > most then break end
  descriptors = descriptors + claimed_descriptors(id)
end
if descriptors > most then return { 'LARGE' } end
local in_flight = {}
for _, id in ipairs(members) do count_claims(id, in_flight) end
local queues = {}
for i, name in ipairs(names) do
  local ready, delayed, dead = count_stored(name)
  local claimed = in_flight[name] or nothing_found()
  local queue = { read_books(name) }
  for _, kind in ipairs({ ready, delayed, claimed, dead }) do add_found(queue, kind) end
  queues[i] = queue
end
return { 'OK', queues }
