#!lua flags=allow-oom
-- Purpose: reads the value kept under a key, or gives the right to compute it, or has the session wait for it.
-- KEYS: 1 root
-- ARGV: 1 session, 2 key, 3 number of the right to compute, and of the wake-up,
--       4 ms that a right to compute lasts at most
-- Returns: FOUND value, 1 if it is an error, generation, age ms, ms left | LEAD generation | WAIT generation
--          | ALONE generation | STALE
-- Idempotency: one that may compute is told so again; one that waits, waits.
local id, name, number = ARGV[1], ARGV[2], ARGV[3]
if not visit(id) then return { 'STALE' } end
local clock = cache.clock()
call('SADD', key.cache_users, id)
local generation, covering = cache.generation(), cache.covering(name)
local head = cache.head(name)
if head and head.expires > clock and head.generation >= covering then
  if head.kind == 'p' then return { 'ALONE', text(generation) } end
  return { 'FOUND', call('HGET', key.cached, name), head.kind == 'e' and '1' or '', text(generation),
    text(math.max(clock - head.made, 0)), text(head.expires - clock) }
end
local compute_right = cache.compute_right(name)
if compute_right then
  if compute_right.session == id and compute_right.number == number then return { 'LEAD', text(compute_right.generation) } end
  -- Who comes after an invalidation does not join what was begun before it, and nobody waits for ever.
  if compute_right.generation >= covering and compute_right.ends > clock then
    if call('HLEN', key.awaiting(name)) >= MAX_AWAITING then return { 'ALONE', text(generation) } end
    call('HSET', key.awaiting(name), id, number)
    return { 'WAIT', text(generation) }
  end
end
if call('SCARD', key.compute_rights_of(id)) >= MAX_COMPUTE_RIGHTS then return { 'ALONE', text(generation) } end
-- Those who wait for a right to compute that is displaced wait for this one.
if compute_right then call('SREM', key.compute_rights_of(compute_right.session), name) end
call('HSET', key.compute_rights, name, id .. ',' .. number .. ',' .. text(generation) .. ','
  .. text(clock + tonumber(ARGV[4])))
call('SADD', key.compute_rights_of(id), name)
return { 'LEAD', text(generation) }
