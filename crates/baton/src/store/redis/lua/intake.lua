-- Messages coming in: parcels at the end of a queue, and the keys that make a message exist once.

-- Whether `bytes` more would go over the bound; an empty queue takes one call of any size.
local function is_full(queue, bytes, max_queue_bytes)
  return queue.bytes > 0 and queue.bytes + bytes > max_queue_bytes
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

-- What a submission is to a call, from where the number of its messages is told: `c` it begins one, with after how long it is
-- cancelled without a follower and whether others share it, `j` it joins one.
local function read_calling(count)
  if #count < 2 then return nil end
  local role, linger, share = string.match(count, '^1([cj])(%d*),?(%d*)$')
  return role, tonumber(linger), share == '1'
end

-- Stores a parcel of `count` messages and `bytes` bytes at the end of its queue; its first id.
local function deposit(id, queue, count, parcel, bytes, role)
  local first = queue.pushed + 1
  add(queue, 'pushed', count)
  add(queue, 'ready', count)
  add(queue, 'bytes', bytes)
  local entry = text(first) .. ',' .. text(count) .. ',' .. text(now) .. (role or '')
  if is_staged(parcel) then
    local at = key.parcel(queue.name, text(first))
    call('RENAME', key.staged(id, parcel), at)
    call('PERSIST', at)
  elseif count == 1 and bytes <= CARRIED then
    entry = entry .. '|' .. parcel
  else
    call('SET', key.parcel(queue.name, text(first)), parcel)
  end
  call('RPUSH', key.ready(queue.name), entry)
  queue.wakes = 1
  return first
end

-- What a key already stands for (one body in one queue), as a verdict; nothing for no key (empty) or one not in use. Of a
-- `call` the verdict has its birth too. Its `proof` is the digest of the body and the milliseconds that the key lives, `digest,milliseconds`.
local function seen_before(submission_key, proof, name, is_call, share)
  if submission_key == '' then return nil end
  local known = call('HGET', key.keys, submission_key)
  if not known then return nil end
  local queue, id, digest, expires, born = string.match(known, '^([^,]+),(%d+),(%x+),(%d+),?(%d*)$')
  if tonumber(expires) <= now then return nil end
  -- Such a key stands for a call only while that has not ended.
  if share and call('HGET', key.call(queue .. '/' .. id), 'ended') ~= '0' then return nil end
  if digest ~= string.match(proof, '^%x+') or queue ~= name then return 'c' end
  return is_call and 'o' .. id .. ',' .. (born ~= '' and born or '0') or 'd' .. id
end

-- What is kept of a key, and when it ends.
local function key_record(proof, queue, id)
  local digest, lives = string.match(proof, '^(%x+),(%d+)$')
  local expires = text(now + tonumber(lives))
  return queue.name .. ',' .. text(id) .. ',' .. digest .. ',' .. expires .. ',' .. text(now), expires
end

local function keep_key(submission_key, proof, queue, id)
  if submission_key == '' then return end
  local record, expires = key_record(proof, queue, id)
  call('HSET', key.keys, submission_key, record)
  call('ZADD', key.key_ends, expires, submission_key)
end

-- Forgets entries of a hash that expired, oldest first, a few or up to a limit; how many.
local function expire_entries(hash, ends, limit)
  local over = call('ZRANGEBYSCORE', ends, '-inf', text(now), 'LIMIT', 0, limit or EXPIRED_AT_ONCE)
  if #over > 0 then
    call('ZREMRANGEBYRANK', ends, 0, #over - 1)
    call('HDEL', hash, unpack(over))
  end
  return #over
end

-- Forgets keys that have expired, more than come. True if each of the `coming` takes the place of one of these; otherwise
-- all that are left are alive, and count.
local function make_room(coming)
  -- So many at most fit the stack.
  local limit = math.min(math.max(EXPIRED_AT_ONCE, coming * EXPIRED_A_KEY), 4000)
  return coming > 0 and expire_entries(key.keys, key.key_ends, limit) == limit
end
