-- Messages coming in: parcels at the end of a queue, and the keys that make a message exist once.

-- Whether `bytes` more would go over the bound; an empty queue takes one call of any size.
local function is_full(queue, bytes, max_backlog)
  return queue.bytes > 0 and queue.bytes + bytes > max_backlog
end

local function ids_used_up(queue, count)
  return queue.pushed + count > MAX_ID
end

-- A parcel is given as its bytes, which begin with their format, or as the place in digits where the same transaction
-- has staged them: what passes through Lua is copied and hashed byte by byte.
local function is_staged(parcel)
  return string.byte(parcel) >= 48
end

-- The bytes of a parcel given by this session.
local function weigh(id, parcel)
  if not is_staged(parcel) then return #parcel end
  local bytes = call('STRLEN', key.staged(id, parcel))
  if bytes == 0 then error({ err = 'DAMAGED nothing is staged at ' .. parcel }) end
  return bytes
end

-- Stores a parcel of `count` messages and `bytes` bytes at the end of its queue; its first id.
local function deposit(id, queue, count, parcel, bytes)
  local first = queue.pushed + 1
  add(queue, 'pushed', count)
  add(queue, 'ready', count)
  add(queue, 'bytes', bytes)
  local at = key.parcel(queue.name, text(first))
  if is_staged(parcel) then
    call('RENAME', key.staged(id, parcel), at)
    call('PERSIST', at)
  else
    call('SET', at, parcel)
  end
  call('RPUSH', key.ready(queue.name), text(first) .. ',' .. text(count) .. ',' .. text(now))
  queue.wakes = 1
  return first
end

-- What a key already stands for (one body in one queue), as a verdict; nothing for no key (empty) or one not in use.
local function seen_before(lot_key, digest, name)
  if lot_key == '' then return nil end
  local known = call('HGET', key.keys, lot_key)
  if not known then return nil end
  local queue, id, known_digest, expires = string.match(known, '^([^,]+),(%d+),(%x+),(%d+)$')
  if tonumber(expires) <= now then return nil end
  return known_digest == digest and queue == name and 'd' .. id or 'c'
end

local function keep_key(lot_key, digest, queue, id)
  if lot_key == '' then return end
  local expires = text(now + KEY_TTL_MS)
  call('HSET', key.keys, lot_key, queue.name .. ',' .. text(id) .. ',' .. digest .. ',' .. expires)
  call('ZADD', key.key_ends, expires, lot_key)
end

-- Forgets a few entries of a hash that expired, oldest first.
local function expire_entries(hash, ends)
  local over = call('ZRANGEBYSCORE', ends, '-inf', text(now), 'LIMIT', 0, EXPIRED_AT_ONCE)
  for _, entry in ipairs(over) do
    call('ZREM', ends, entry)
    call('HDEL', hash, entry)
  end
end
