-- What a call begins with: nothing of the call before it is left.
local function begin(fleet)
  call, opened = redis.call, {}
  name_keys(fleet)
  now = tonumber(store_time())
end
