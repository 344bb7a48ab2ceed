-- What every call begins and ends with: nothing of the call before it is left, and nothing is left to be written.
local function begin(fleet)
  call, opened, touched = redis.call, {}, nil
  name_keys(fleet)
  now = store_time()
end

local function finish()
  if touched and not touched.kept then keep_session() end
end
