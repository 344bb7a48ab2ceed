-- The beginning of a fleet: its meta record, written before anything else of it exists.

-- The refusal of a fleet that must not be used now: of another format, half migrated or, unless it is only looked at,
-- half removed. Nothing if it may.
local function unfit_fleet(only_looks)
  local stored = call('HMGET', key.meta, 'format', 'migrating', 'destroying')
  local format = tonumber(stored[1] or FORMAT)
  if format > FORMAT then return { 'NEWER', stored[1], text(FORMAT) } end
  if stored[2] or format < FORMAT then return { 'OLDER', stored[2] or stored[1], text(FORMAT) } end
  if stored[3] and not only_looks then return { 'DESTROYING' } end
  return nil
end

local function found_fleet(incarnation)
  if call('HEXISTS', key.meta, 'incarnation') == 1 then return end
  foreign.refuse()
  call('HSET', key.meta, 'incarnation', incarnation, 'format', text(FORMAT))
end
