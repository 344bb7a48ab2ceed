#!lua flags=allow-oom
-- Purpose: extends the lease of a session and tells what the fleet wants of it.
-- KEYS: 1 root
-- ARGV: 1 session, 2 report
-- Returns: OK now stop(''|drain|now) {claim numbers} {expired sessions} {due sources} {held source, epoch, …}
--          nodes | STALE
-- Idempotency: a repeat is another beat.
local id = ARGV[1]
local session, meta = touch(id, 'kind', 'offers', 'join_no')
if not session then return { 'STALE' } end
call('HSET', key.session(id), 'beat', text(now), 'report', ARGV[2])
local offered, due, holds = {}, {}, {}
for _, offer in ipairs(session[2] == 'n' and read_offers(session[3]) or {}) do
  offered[offer.source] = offered[offer.source] or {}
  table.insert(offered[offer.source], offer)
end
local sources = call('SMEMBERS', key.sources)
for _, name in ipairs(sources) do
  local source = call('HMGET', key.source(name), 'holder', 'epoch', 'ended', 'definition', 'queue')
  if source[1] == id then
    holds[#holds + 1] = name
    holds[#holds + 1] = source[2]
  elseif source[3] ~= '1' then
    local offer = false
    for _, one in ipairs(offered[name] or {}) do offer = offer or defined_as(source[4], source[5], one) end
    if offer and not alive(source[1]) then due[#due + 1] = name end
  end
end
local order = call('HMGET', key.meta, 'stop_upto', 'stop_how')
local stop = order[1] and tonumber(session[4]) <= tonumber(order[1]) and order[2] or ''
local expired = call('ZRANGEBYSCORE', key.sessions, '-inf', text(meta.clock), 'LIMIT', 0, 16)
return { 'OK', text(now), stop, call('HKEYS', key.claims(id)), expired, due, holds,
  text(call('SCARD', key.nodes)) }
