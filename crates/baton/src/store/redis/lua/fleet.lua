-- The beginning of a fleet: its meta record, written before anything else of it exists.

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

-- Brings a fleet of an older format up to this one; its refusal while sessions of an older release beat. Silent ones
-- count as visitors, and for no queue, until they are reaped.
local function lift_fleet()
  local format = call('HGET', key.meta, 'format')
  if not format or tonumber(format) >= FORMAT then return nil end
  local members, live = call('ZRANGE', key.sessions, 0, -1), 0
  for _, id in ipairs(members) do
    local record = call('HMGET', key.session(id), 'beat', 'lease')
    if tonumber(record[1] or 0) + tonumber(record[2] or 0) > now then live = live + 1 end
  end
  if live > 0 then return { 'OLDER', text(live) } end
  for _, id in ipairs(members) do call('HSET', key.session(id), 'kind', 'c') end
  call('UNLINK', key.nodes)
  call('HSET', key.meta, 'format', text(FORMAT))
  return nil
end
