-- What is recalled: engine/recalls.rs in Lua. Values lie in one hash, what is known of each in another; the generation, the
-- floor and what all values count for are fields of the fleet's record.
local recalls = {}

-- What the fleet clock would show if it were advanced now.
function recalls.clock()
  local stored = call('HMGET', key.meta, 'clock', 'last', 'least')
  local clock, last = tonumber(stored[1] or 0), tonumber(stored[2] or 0)
  if now <= last then return clock end
  return clock + math.min(now - last, math.floor(tonumber(stored[3] or 0) / 2))
end

function recalls.generation()
  return tonumber(call('HGET', key.meta, 'forgotten') or 0)
end

-- The newest generation in which something was forgotten that covers the key.
function recalls.covering(name)
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
function recalls.weight(name, bytes)
  return A_RECALLED + #name + bytes
end

-- What is known of a value: `kind,generation,made,expires,session,number`; nothing if there is none.
function recalls.head(name)
  local kind, generation, made, expires, by =
    string.match(call('HGET', key.recalled_heads, name) or '', '^(%a),(%d+),(%d+),(%d+),(.*)$')
  if not kind then return nil end
  return { kind = kind, generation = tonumber(generation), made = tonumber(made), expires = tonumber(expires), by = by }
end

-- Forgets values, those that end first: up to `limit` that have ended, or until they counted for `bytes`.
function recalls.drop_oldest(limit, upto, bytes)
  local oldest, gone = call('ZRANGEBYSCORE', key.recalled_ends, '-inf', upto, 'LIMIT', 0, limit), 0
  for _, name in ipairs(oldest) do
    if gone >= bytes then break end
    gone = gone + recalls.drop(name)
  end
end

-- Forgets the value of a key; what it counted for.
function recalls.drop(name)
  if call('ZREM', key.recalled_ends, name) == 0 then return 0 end
  local weight = recalls.weight(name, call('HSTRLEN', key.recalled, name))
  call('HDEL', key.recalled, name)
  call('HDEL', key.recalled_heads, name)
  call('HINCRBY', key.meta, 'recalled', -weight)
  return weight
end

-- Keeps a value in the place of the one before; the oldest make room.
function recalls.keep(clock, name, value, most, head)
  recalls.drop_oldest(EXPIRED_AT_ONCE, text(clock), math.huge)
  recalls.drop(name)
  local weight = recalls.weight(name, #value)
  local over = call('HINCRBY', key.meta, 'recalled', weight) - most
  -- Each makes room for some of it; a few more where the bound was larger before.
  if over > 0 then recalls.drop_oldest(math.ceil(weight / A_RECALLED) + EXPIRED_AT_ONCE, '+inf', over) end
  call('HSET', key.recalled, name, value)
  call('HSET', key.recalled_heads, name, head.kind .. ',' .. text(head.generation) .. ',' .. text(head.made) .. ','
    .. text(head.expires) .. ',' .. head.by)
  call('ZADD', key.recalled_ends, text(head.expires), name)
end

-- Who has the right to compute the value of a key.
function recalls.compute_right(name)
  local session, number, generation, ends =
    string.match(call('HGET', key.compute_rights, name) or '', '^(%x+),(%d+),(%d+),(%d+)$')
  if not session then return nil end
  return { session = session, number = number, generation = tonumber(generation), ends = tonumber(ends) }
end

-- A right to compute is over: those who wait for it are woken.
function recalls.end_compute_right(name, id)
  call('HDEL', key.compute_rights, name)
  call('SREM', key.compute_rights_of(id), name)
  local awaiting = call('HGETALL', key.awaiting(name))
  for at = 1, #awaiting, 2 do
    if alive(awaiting[at]) then wake(awaiting[at], '!' .. awaiting[at + 1]) end
  end
  call('UNLINK', key.awaiting(name))
end

-- Wakes those who recall, to look at what they wait for and what was forgotten.
function recalls.tell(most)
  local recallers = call('SCARD', key.recallers) <= most and call('SMEMBERS', key.recallers)
    or call('SRANDMEMBER', key.recallers, most)
  for _, id in ipairs(recallers) do wake(id, '!0') end
end

-- A session is over, and with it its rights to compute: whoever waits for one contends for it.
function recalls.gone(id)
  if call('SREM', key.recallers, id) == 0 then return end
  local compute_rights = call('SMEMBERS', key.compute_rights_of(id))
  for _, name in ipairs(compute_rights) do
    call('HDEL', key.compute_rights, name)
    call('UNLINK', key.awaiting(name))
  end
  call('UNLINK', key.compute_rights_of(id))
  if #compute_rights > 0 then recalls.tell(MAX_TOLD_FORGOTTEN) end
end
