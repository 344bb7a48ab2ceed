#!lua flags=allow-oom
-- Purpose: extends the lease of a session and tells what the fleet wants of it.
-- KEYS: 1 root
-- ARGV: 1 session, 2 report, then queues it asks about
-- Returns: OK now stop(''|drain|now) {claims as `number queue`} {expired sessions} {due sources}
--          {held source, epoch, …} {those of the queues that others see to} | STALE
-- Idempotency: a repeat is another beat.
local id = ARGV[1]
local session, meta = touch(id, 'kind', 'offers', 'join_no')
if not session then return { 'STALE' } end
keep_session('beat', text(now), 'report', ARGV[2])
call('ZADD', key.sessions, touched.expires, id)

-- Whether a session without a baton works for the queue, and nothing in it has been claimable for long.
local function is_helped(name)
  local books = call('HMGET', key.queue(name), 'workers', 'ready', 'delayed')
  if tonumber(books[1] or 0) <= 0 then return false end
  if tonumber(books[2] or 0) > 0 then
    if call('EXISTS', key.suspects(name)) == 1 then return false end
    local front = call('LINDEX', key.ready(name), 0)
    if front and read_entry(front).born + PATIENCE_MS <= now then return false end
  end
  if tonumber(books[3] or 0) > 0 then
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
local order = call('HMGET', key.meta, 'stop_upto', 'stop_how')
local stop = order[1] and tonumber(session[4]) <= tonumber(order[1]) and order[2] or ''
local ends, expired = {}, {}
for _, other in ipairs(call('ZRANGEBYSCORE', key.sessions, '-inf', text(meta.clock), 'LIMIT', 0, MAX_TOLD_EXPIRED)) do
  ends[other] = lease_end(other)
  if ends[other] <= meta.clock then
    expired[#expired + 1] = other
  else
    call('ZADD', key.sessions, text(ends[other]), other)
  end
end
table.sort(expired, function(a, b)
  if ends[a] == ends[b] then return a < b end
  return ends[a] < ends[b]
end)
local claims
if call('HLEN', key.claims(id)) <= MAX_TOLD_CLAIMS then
  claims = call('HKEYS', key.claims(id))
else
  claims = call('HRANDFIELD', key.claims(id), MAX_TOLD_CLAIMS)
end
local helped = {}
for i = 3, #ARGV do
  if is_helped(ARGV[i]) then helped[#helped + 1] = ARGV[i] end
end
return { 'OK', text(now), stop, claims, expired, due, holds, helped }
