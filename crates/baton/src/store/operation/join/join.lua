#!lua flags=allow-oom
-- Purpose: registers a session with the sources it offers; the first one begins the fleet.
-- KEYS: 1 root
-- ARGV: 1 session, 2 kind (n|c), 3 host, 4 pid, 5 queues `a,b`, 6 lease ms, 7 offers `source,queue,definition;…`,
--       8 incarnation to give a new fleet, 9 join number of the session it goes on for, or empty,
--       10 sources `a,b` among the offers that take a stored one over under another definition
-- Returns: OK incarnation now join number | NEWER found known | OLDER found known | DESTROYING
--          | DEFINITION source | REDEFINED source session (it offers it otherwise)
-- Idempotency: a session that exists is left as it is and answered the same.
local id, offers, adopting = ARGV[1], read_offers(ARGV[7]), {}
for name in string.gmatch(ARGV[10], '[^,]+') do adopting[name] = true end
local unfit = unfit_fleet()
if unfit then return unfit end
foreign.refuse()
for name in string.gmatch(ARGV[5], '[^,]+') do foreign.refuse_queue(name) end
for _, offer in ipairs(offers) do
  foreign.refuse_queue(offer.queue)
  foreign.refuse_source(offer.source)
end
for _, offer in ipairs(offers) do
  local known = call('HMGET', key.source(offer.source), 'definition', 'queue')
  if known[2] and not defined_as(known[1], known[2], offer) then
    if not adopting[offer.source] then return { 'DEFINITION', offer.source } end
    local other = offering(offer.source, function(session, one)
      return session ~= id and (one.definition ~= offer.definition or one.queue ~= offer.queue)
    end)
    if other then return { 'REDEFINED', offer.source, other } end
  end
end
found_fleet(ARGV[8])
local clock = advance()
if call('EXISTS', key.session(id)) == 0 then
  local joins = text(call('HINCRBY', key.meta, 'joins', 1))
  local join_no = ARGV[9] ~= '' and ARGV[9] or joins
  call('HSET', key.session(id), 'kind', ARGV[2], 'host', ARGV[3], 'pid', ARGV[4], 'queues', ARGV[5], 'lease', ARGV[6],
    'offers', ARGV[7], 'join_no', join_no, 'joined', text(now), 'beat', text(now), 'report', '', 'settle_no', '0',
    'page', '0')
  open_submits(id)
  call('ZADD', key.sessions, text(clock + tonumber(ARGV[6])), id)
  call('ZADD', key.leases, ARGV[6], id)
  keep_least()
  if ARGV[2] == 'n' then call('SADD', key.nodes, id) end
  for name in string.gmatch(ARGV[5], '[^,]+') do named_queue(name) end
  count_worker(ARGV[2], ARGV[5], 1)
  for _, offer in ipairs(offers) do
    named_queue(offer.queue)
    call('SADD', key.sources, offer.source)
    call('HSET', key.source(offer.source), 'queue', offer.queue, 'definition', offer.definition)
  end
end
return { 'OK', call('HGET', key.meta, 'incarnation'), text(now), call('HGET', key.session(id), 'join_no') }
