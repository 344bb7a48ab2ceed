-- What is cached: engine/cache.rs in Lua. Values lie in one hash, what is known of each in another; the generation, the
-- floor and what all values count for are fields of the fleet's record.
local cache = {}

-- What the fleet clock would show if it were advanced now.
function cache.clock()
  local stored = call('HMGET', key.meta, 'clock', 'last', 'least')
  local clock, last = tonumber(stored[1] or 0), tonumber(stored[2] or 0)
  if now <= last then return clock end
  return clock + math.min(now - last, math.floor(tonumber(stored[3] or 0) / 2))
end

function cache.generation()
  return tonumber(call('HGET', key.meta, 'forgotten') or 0)
end

-- The newest generation in which something was forgotten that covers the key.
function cache.covering(name)
  local newest = tonumber(call('HGET', key.meta, 'floor') or 0)
  if call('EXISTS', key.forgotten) == 0 then return newest end
  local scopes, from = { 'p', 'p' .. name .. '/', 'k' .. name }, 1
  while true do
    local at = string.find(name, '/', from, true)
    if not at then break end
    scopes[#scopes + 1], from = 'p' .. string.sub(name, 1, at), at + 1
  end
  for _, generation in ipairs(call('ZMSCORE', key.forgotten, unpack(scopes))) do
    if generation then newest = math.max(newest, tonumber(generation)) end
  end
  return newest
end

-- What a value of so many bytes counts for.
function cache.weight(name, bytes)
  return A_CACHED + #name + bytes
end

-- What is known of a value: `kind,generation,made,expires,session,number`; nothing if there is none.
function cache.head(name)
  local kind, generation, made, expires, by =
    string.match(call('HGET', key.cached_heads, name) or '', '^(%a),(%d+),(%d+),(%d+),(.*)$')
  if not kind then return nil end
  return { kind = kind, generation = tonumber(generation), made = tonumber(made), expires = tonumber(expires), by = by }
end

-- Forgets values, those that end first: up to `limit` that have ended, or until they counted for `bytes`.
function cache.drop_oldest(limit, upto, bytes)
  local oldest, gone = call('ZRANGEBYSCORE', key.cached_ends, '-inf', upto, 'LIMIT', 0, limit), 0
  for _, name in ipairs(oldest) do
    if gone >= bytes then break end
    gone = gone + cache.drop(name)
  end
end

-- Forgets the value of a key; what it counted for.
function cache.drop(name)
  if call('ZREM', key.cached_ends, name) == 0 then return 0 end
  local weight = cache.weight(name, call('HSTRLEN', key.cached, name))
  call('HDEL', key.cached, name)
  call('HDEL', key.cached_heads, name)
  call('HINCRBY', key.meta, 'recalled', -weight)
  return weight
end

-- Keeps a value in the place of the one before; the oldest make room.
function cache.keep(clock, name, value, most, head)
  cache.drop_oldest(EXPIRED_AT_ONCE, text(clock), math.huge)
  cache.drop(name)
  local weight = cache.weight(name, #value)
  local over = call('HINCRBY', key.meta, 'recalled', weight) - most
  -- Each makes room for some of it; a few more where the bound was larger before.
  if over > 0 then cache.drop_oldest(math.ceil(weight / A_CACHED) + EXPIRED_AT_ONCE, '+inf', over) end
  call('HSET', key.cached, name, value)
  call('HSET', key.cached_heads, name, head.kind .. ',' .. text(head.generation) .. ',' .. text(head.made) .. ','
    .. text(head.expires) .. ',' .. head.by)
  call('ZADD', key.cached_ends, text(head.expires), name)
end

-- Who has the right to compute the value of a key.
function cache.compute_right(name)
  local session, number, generation, ends =
    string.match(call('HGET', key.compute_rights, name) or '', '^(%x+),(%d+),(%d+),(%d+)$')
  if not session then return nil end
  return { session = session, number = number, generation = tonumber(generation), ends = tonumber(ends) }
end

-- A right to compute is over: those who wait for it are woken.
function cache.end_compute_right(name, id)
  call('HDEL', key.compute_rights, name)
  call('SREM', key.compute_rights_of(id), name)
  local awaiting = call('HGETALL', key.awaiting(name))
  for at = 1, #awaiting, 2 do
    if alive(awaiting[at]) then wake_session(awaiting[at], '!' .. awaiting[at + 1]) end
  end
  call('UNLINK', key.awaiting(name))
end

-- Wakes those who cache, to look at what they wait for and what was forgotten.
function cache.tell(most)
  local cache_users = call('SCARD', key.cache_users) <= most and call('SMEMBERS', key.cache_users)
    or call('SRANDMEMBER', key.cache_users, most)
  for _, id in ipairs(cache_users) do wake_session(id, '!0') end
end

-- A session is over, and with it its rights to compute: whoever waits for one contends for it.
function cache.gone(id)
  if call('SREM', key.cache_users, id) == 0 then return end
  local compute_rights = call('SMEMBERS', key.compute_rights_of(id))
  for _, name in ipairs(compute_rights) do
    call('HDEL', key.compute_rights, name)
    call('UNLINK', key.awaiting(name))
  end
  call('UNLINK', key.compute_rights_of(id))
  if #compute_rights > 0 then cache.tell(MAX_NOTIFIED_INVALIDATIONS) end
end
