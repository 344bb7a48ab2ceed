#!lua flags=allow-oom
-- Purpose: removes a fleet step by step: marked first, keys as they are found, the meta record last.
-- KEYS: 1 root
-- ARGV: 1 begin, then what the fleet holds: queues, messages, errors · remove, then keys · finish
-- Returns: OK, at the finish with what the fleet held when its removal began
--          | NONE (there is no such fleet, or it is not being removed; at the finish: it had never begun)
--          | NODES how many
-- Idempotency: begin finds the mark and goes on. Without the mark nothing is removed: another destruction has finished,
--              and what is found may belong to a new fleet of the same name.
if ARGV[1] == 'begin' then
  if call('EXISTS', key.meta) == 0 then return { 'NONE' } end
  local members, nodes = call('ZRANGE', key.sessions, 0, -1), call('SCARD', key.nodes)
  if nodes > 0 then return { 'NODES', text(nodes) } end
  -- Who finds the mark may have seen only what was left: the first one's word stands.
  call('HSETNX', key.meta, 'destroying', table.concat(ARGV, ',', 2))
  for _, id in ipairs(members) do
    local page = call('HGET', key.session(id), 'page')
    if page then remove_submits(id, page) end
    call('UNLINK', key.session(id), key.claims(id))
  end
  call('UNLINK', key.sessions, key.leases)
  return { 'OK' }
end
local held = call('HGET', key.meta, 'destroying')
if not held then return { 'NONE' } end
if ARGV[1] == 'remove' then
  for i = 2, #ARGV do call('UNLINK', ARGV[i]) end
  return { 'OK' }
end
local begun = call('HEXISTS', key.meta, 'incarnation') == 1
call('UNLINK', key.meta)
if not begun then return { 'NONE' } end
return { 'OK', held }
