#!lua flags=allow-oom
-- Purpose: extends the lease of a session and tells what the fleet wants of it.
-- KEYS: 1 root
-- ARGV: 1 session, 2 report, then queues it asks about
-- Returns: OK now stop(''|drain|now) {claims as `number queue`} {expired sessions} {due sources}
--          {held source, epoch, …} {those of the queues that others see to}
--          {cancelled calls it holds messages of} {calls that may be forsaken} generation | STALE
-- Idempotency: a repeat is another beat.
local id = ARGV[1]
local session = visit(id, 'kind', 'offers', 'join_no')
if not session then return { 'STALE' } end
local clock = advance()
call('ZADD', key.sessions, text(clock + tonumber(session[1])), id)
call('HSET', key.session(id), 'beat', text(now), 'report', ARGV[2])

-- Whether a session without a baton works for the queue, and nothing in it has been claimable for long.
local function is_helped(name)
  local queue = known_queue(name)
  if not queue or queue.workers <= 0 then return false end
  if has_ready(queue) then
    if call('EXISTS', key.suspects(name)) == 1 then return false end
    local front, single = call('LINDEX', key.ready(name), 0), call('LINDEX', key.inbox(name, queue.inbox, queue.pushed), 0)
    local born = front and born_of(name, front) or single and born_single(single)
    if born and born + PATIENCE_MS <= now then return false end
  end
  if queue.delayed > 0 then
    local first = call('ZRANGE', key.delayed(name), 0, 0, 'WITHSCORES')
    if first[2] and tonumber(first[2]) + PATIENCE_MS <= now then return false end
  end
  return true
end

-- Who holds a baton offers its source: only what is offered is read, however many sources there are.
local due, holds = {}, {}
for _, offer in ipairs(session[2] == 'n' and read_offers(session[3]) or {}) do
  local source = call('HMGET', key.source(offer.source), 'holder', 'epoch', 'ended', 'definition', 'queue')
  if source[1] == id then
    holds[#holds + 1] = offer.source
    holds[#holds + 1] = source[2]
  elseif source[5] and source[3] ~= '1' and defined_as(source[4], source[5], offer) and not alive(source[1]) then
    due[#due + 1] = offer.source
  end
end
local order = call('HMGET', key.meta, 'stop_upto', 'stop_how', 'forgotten')
local stop = order[1] and tonumber(session[4]) <= tonumber(order[1]) and order[2] or ''
local expired = call('ZRANGEBYSCORE', key.sessions, '-inf', text(clock), 'LIMIT', 0, MAX_REPORTED_EXPIRED)
local claims
if call('HLEN', key.claims(id)) <= MAX_REPORTED_CLAIMS then
  claims = call('HKEYS', key.claims(id))
else
  claims = call('HRANDFIELD', key.claims(id), MAX_REPORTED_CLAIMS)
end
local helped = {}
for i = 3, #ARGV do
  if is_helped(ARGV[i]) then helped[#helped + 1] = ARGV[i] end
end
local cancelled = call('SRANDMEMBER', key.told(id), MAX_REPORTED_CANCELLED)
local forsaken = call('ZRANGEBYSCORE', key.looks, '-inf', text(now), 'LIMIT', 0, MAX_REPORTED_EXPIRED)
return { 'OK', text(now), stop, claims, expired, due, holds, helped, cancelled, forsaken,
  order[3] or '0' }
