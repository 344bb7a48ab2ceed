-- What a call begins with: nothing of the call before it is left, and if it writes, it may run to its end.
local function begin(fleet, only_reads)
  call, opened, reads, thinning = redis.call, {}, only_reads, THINNED_AT_ONCE
  name_keys(fleet)
  if not only_reads then rights.demand() end
  now = tonumber(store_time())
end
