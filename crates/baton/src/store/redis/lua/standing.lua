-- How a fleet stands towards this format: what a migration looks at, and asks again before each of its steps.

-- What every call with a session changes.
local function read_stamp()
  local meta = call('HMGET', key.meta, 'clock', 'last', 'joins')
  return (meta[1] or '') .. ',' .. (meta[2] or '') .. ',' .. (meta[3] or '')
end

-- The refusal of a fleet that no migration can help: of a newer format, or half removed; then the format it is in, which
-- of one that is half migrated is the former. Nothing for no fleet.
local function read_format()
  local stored = call('HMGET', key.meta, 'format', 'migrating', 'destroying')
  if tonumber(stored[1] or 0) > FORMAT then return { 'NEWER', stored[1], text(FORMAT) } end
  if stored[3] then return { 'DESTROYING' } end
  return nil, stored[2] or stored[1] or nil
end
