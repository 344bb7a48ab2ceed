#!lua flags=no-writes
-- Purpose: counts the data itself in one step, if there is not too much of it.
-- KEYS: 1 root
-- ARGV: 1 most descriptors to count
-- Returns: OK {{{queue, counter …}, four for each of ready, delayed, in flight, dead} …} | LARGE | NEWER found known | OLDER found known
--          The four are messages, their sum, how many of them lack their bodies, the lowest of these or 0.
-- Idempotency: reads only.
local unfit = unfit_fleet(true)
if unfit then return unfit end
-- A piece of a claim takes at least eighteen bytes of text with its store time, so bytes bound the pieces.
local PIECE_BYTES = 18
local names, members = call('SMEMBERS', key.queues), call('ZRANGE', key.sessions, 0, -1)
local descriptors = 0
for _, name in ipairs(names) do
  descriptors = descriptors + call('LLEN', key.ready(name)) + call('LLEN', key.inbox(name))
    + call('LLEN', key.suspects(name)) + call('ZCARD', key.delayed(name)) + call('ZCARD', key.dead_order(name))
end
for _, id in ipairs(members) do
  descriptors = descriptors + call('HLEN', key.carried(id))
  for _, claim_no in ipairs(call('HKEYS', key.claims(id))) do
    descriptors = descriptors + math.ceil(call('HSTRLEN', key.claims(id), claim_no) / PIECE_BYTES)
  end
end
if descriptors > tonumber(ARGV[1]) then return { 'LARGE' } end
local in_flight = {}
for _, id in ipairs(members) do count_claims(id, in_flight) end
local queues = {}
for i, name in ipairs(names) do
  local ready, delayed, dead = nothing_found(), nothing_found(), nothing_found()
  count_all('ready', name, ready)
  count_all('suspects', name, ready)
  count_all('delayed', name, delayed)
  count_all('dead', name, dead)
  local claimed = in_flight[name] or nothing_found()
  local queue = { read_books(name) }
  for _, kind in ipairs({ ready, delayed, claimed, dead }) do add_found(queue, kind) end
  queues[i] = queue
end
return { 'OK', queues }
