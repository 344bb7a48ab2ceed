-- Store time: the one place where a clock is read. Milliseconds since 1970, as text; it stands still within a script.
local function store_time()
  local time = call('TIME')
  return string.format('%s%03d', time[1], time[2] / 1000)
end
