-- The beginning of a fleet: its meta record, written before anything else of it exists.
local FORMAT = 2

-- The refusal of a fleet that must not be written to now: of a newer format, or half removed. Nothing if it may.
local function unfit_fleet()
  local stored = call('HMGET', key.meta, 'format', 'purging')
  if tonumber(stored[1] or 0) > FORMAT then return { 'NEWER', stored[1], text(FORMAT) } end
  if stored[2] then return { 'PURGING' } end
  return nil
end

local function found_fleet(incarnation)
  if call('HSETNX', key.meta, 'incarnation', incarnation) == 1 then
    call('HSET', key.meta, 'format', text(FORMAT))
  end
end
