-- Keys of the fleet under which another program keeps something of another kind. A call that would fail at one of them
-- midway is refused before its first write. One local in all: Lua bounds how many the scripts share.
local foreign = {
  kinds = {
    meta = 'hash', hold = 'string', sessions = 'zset', leases = 'zset', nodes = 'set', sources = 'set', queues = 'set',
    keys = 'hash', key_ends = 'zset', marks = 'hash', results = 'hash', result_ends = 'zset', cached = 'hash',
    cached_heads = 'hash', cached_ends = 'zset', forgotten = 'zset', invalidated_at = 'hash', compute_rights = 'hash',
    cache_users = 'set', last_ids = 'hash', joined = 'hash', looks = 'zset', call_ends = 'zset',
  },
  queue_kinds = {
    counts = 'string', queue = 'hash', ready = 'list', suspects = 'list', delayed = 'zset', dead_order = 'zset',
    dead = 'hash', waiters = 'zset',
  },
}

function foreign.expect(name, kind)
  local found = call('TYPE', name).ok
  if found ~= 'none' and found ~= kind then error({ err = 'FOREIGN ' .. name .. ' ' .. found .. ' ' .. kind }) end
end

-- Of the keys that a fleet has once.
function foreign.refuse()
  for name, kind in pairs(foreign.kinds) do foreign.expect(key[name], kind) end
end

-- Of a queue; most that are asked about are new and have none. Whether it has any.
function foreign.refuse_queue(queue)
  local names = {}
  for name in pairs(foreign.queue_kinds) do names[#names + 1] = key[name](queue) end
  if call('EXISTS', unpack(names)) == 0 then return false end
  for name, kind in pairs(foreign.queue_kinds) do foreign.expect(key[name](queue), kind) end
  return true
end

function foreign.refuse_source(source)
  foreign.expect(key.source(source), 'hash')
end
