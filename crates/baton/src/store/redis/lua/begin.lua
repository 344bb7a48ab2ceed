-- What a call begins with: nothing of the call before it is left.
local function begin(fleet, only_reads)
  call, opened, reads, thinning = redis.call, {}, only_reads, THINNED_AT_ONCE
  name_keys(fleet)
  now = tonumber(store_time())
end
