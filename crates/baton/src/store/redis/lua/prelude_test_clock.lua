-- Store time as a test sets it: the same scripts, another hand on the clock.
local function store_time()
  return tonumber(redis.call('GET', KEYS[1] .. ':test-clock') or 0)
end
