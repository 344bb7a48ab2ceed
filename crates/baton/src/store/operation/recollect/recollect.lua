#!lua flags=allow-oom
-- Purpose: reads the value kept under a key, or gives the right to compute it, or has the session wait for it.
-- KEYS: 1 root
-- ARGV: 1 session, 2 key, 3 number of the flight, and of the wake-up,
--       4 ms that a flight lasts at most
-- Returns: FOUND value, 1 if it is an error, generation, age ms, ms left | LEAD generation | WAIT generation
--          | ALONE generation | STALE
-- Idempotency: one that may compute is told so again; one that waits, waits.
local id, name, number = ARGV[1], ARGV[2], ARGV[3]
if not visit(id) then return { 'STALE' } end
local clock = recalls.clock()
call('SADD', key.recallers, id)
local generation, covering = recalls.generation(), recalls.covering(name)
local head = recalls.head(name)
if head and head.expires > clock and head.generation >= covering then
  if head.kind == 'p' then return { 'ALONE', text(generation) } end
  return { 'FOUND', call('HGET', key.recalled, name), head.kind == 'e' and '1' or '', text(generation),
    text(math.max(clock - head.made, 0)), text(head.expires - clock) }
end
local flight = recalls.flight(name)
if flight then
  if flight.session == id and flight.number == number then return { 'LEAD', text(flight.generation) } end
  -- Who comes after an invalidation does not join what was begun before it, and nobody waits for ever.
  if flight.generation >= covering and flight.ends > clock then
    if call('HLEN', key.awaiting(name)) >= MAX_AWAITING then return { 'ALONE', text(generation) } end
    call('HSET', key.awaiting(name), id, number)
    return { 'WAIT', text(generation) }
  end
end
if call('SCARD', key.flights_of(id)) >= MAX_FLIGHTS then return { 'ALONE', text(generation) } end
-- Those who wait for a flight that is displaced wait for this one.
if flight then call('SREM', key.flights_of(flight.session), name) end
call('HSET', key.flights, name, id .. ',' .. number .. ',' .. text(generation) .. ','
  .. text(clock + tonumber(ARGV[4])))
call('SADD', key.flights_of(id), name)
return { 'LEAD', text(generation) }
