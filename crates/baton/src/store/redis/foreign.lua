#!lua flags=no-writes
-- Purpose: names a key of the fleet under which another program keeps something of another kind, and what rights are missing.
-- KEYS: 1 root
-- ARGV: none for the keys that a fleet has once, or queues|sources, then names of that kind
-- Returns: OK, without names followed by {queue …} {source …} | the error FOREIGN key, what is there, what belongs there
--          | the error RIGHTS
-- Idempotency: reads only.
call = redis.call
name_keys(KEYS[1])
rights.demand()
begin(KEYS[1], true)
if ARGV[1] then
  local refuse = ARGV[1] == 'queues' and foreign.refuse_queue or foreign.refuse_source
  for i = 2, #ARGV do refuse(ARGV[i]) end
  return { 'OK' }
end
foreign.refuse()
return { 'OK', call('SMEMBERS', key.queues), call('SMEMBERS', key.sources) }
