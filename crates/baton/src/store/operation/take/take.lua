#!lua flags=allow-oom
-- Purpose: takes the baton of an offered source if nobody has it.
-- KEYS: 1 root
-- ARGV: 1 session, 2 source
-- Returns: OK epoch cursor batch_no | STALE | NOTOFFERED source | DEFINITION source
--          | ENDED source | BATON source holder
-- Idempotency: the holder itself gets the same epoch again.
local id, name = ARGV[1], ARGV[2]
local session = visit(id, 'kind', 'offers', 'queues', 'batons')
if not session then return { 'STALE' } end
local source = call('HMGET', key.source(name), 'queue', 'definition', 'holder', 'epoch', 'cursor', 'batch_no', 'ended')
local offer
for _, one in ipairs(session[2] == 'n' and read_offers(session[3]) or {}) do
  if one.source == name and not offer then offer = one end
end
if not source[1] or not offer then return { 'NOTOFFERED', name } end
if not defined_as(source[2], source[1], offer) then return { 'DEFINITION', name } end
if source[7] == '1' then return { 'ENDED', name } end
local holder = alive(source[3])
if holder and holder ~= id then return { 'BATON', name, holder } end
local epoch, batch_no = source[4], source[6] or '0'
if not holder then
  epoch, batch_no = text(math.max(now, tonumber(epoch or 0) + 1)), '0'
  call('HSET', key.source(name), 'holder', id, 'queue', offer.queue, 'definition', offer.definition,
    'epoch', epoch, 'batch_no', batch_no)
  local batons = tonumber(session[5] or 0)
  if batons == 0 then count_worker(session[2], session[4], -1) end
  call('HSET', key.session(id), 'batons', text(batons + 1))
end
return { 'OK', epoch, source[5] or '', batch_no }
