-- Store time: the one place where a clock is read. Milliseconds since 1970; it stands still within a script.
local function store_time()
  local time = call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
