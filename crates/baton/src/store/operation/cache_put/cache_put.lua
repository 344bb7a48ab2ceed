#!lua
-- Purpose: keeps what was computed under a right to it, if nothing that covers its key was forgotten since; wakes those who
--          wait.
-- KEYS: 1 root
-- ARGV: 1 session, 2 key, 3 number of the right to compute, 4 kind (v|e|p), 5 ms it is kept, 6 most bytes of all, 7 value
-- Returns: KEPT generation | PASSED | DROPPED | STALE
-- Idempotency: a repeat finds what it kept.
local id, name, number, kind, value = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[7]
if not visit(id) then return { 'STALE' } end
local clock, compute_right = cache.clock(), cache.compute_right(name)
if not compute_right or compute_right.session ~= id or compute_right.number ~= number then
  local head = cache.head(name)
  if not head or head.by ~= id .. ',' .. number then return { 'DROPPED' } end
  if head.kind == 'p' then return { 'PASSED' } end
  return { 'KEPT', text(head.generation) }
end
cache.end_compute_right(name, id)
if compute_right.generation < cache.covering(name) then return { 'DROPPED' } end
local most = tonumber(ARGV[6])
if cache.weight(name, #value) > math.floor(most / 8) then kind, value = 'p', '' end
-- Nothing newer covers it: it is as good as one begun now.
local generation = cache.generation()
cache.keep(clock, name, value, most, { kind = kind, generation = generation, made = clock,
  expires = clock + tonumber(ARGV[5]), by = id .. ',' .. number })
if kind == 'p' then return { 'PASSED' } end
return { 'KEPT', text(generation) }
