#!lua flags=allow-oom
-- Purpose: begins the removal of a fleet: marks it, and ends the sessions that are left, all of them clients.
-- KEYS: 1 root
-- ARGV: none
-- Returns: OK | NONE (there is no such fleet) | NODES how many
-- Idempotency: a repeat finds the mark and goes on; the meta record goes last, by the caller.
if call('EXISTS', key.meta) == 0 then return { 'NONE' } end
local members, nodes = call('ZRANGE', key.sessions, 0, -1), 0
for _, id in ipairs(members) do
  if call('HGET', key.session(id), 'kind') == 'n' then nodes = nodes + 1 end
end
if nodes > 0 then return { 'NODES', text(nodes) } end
call('HSET', key.meta, 'purging', '1')
for _, id in ipairs(members) do call('UNLINK', key.session(id), key.claims(id)) end
call('UNLINK', key.sessions, key.leases)
return { 'OK' }
