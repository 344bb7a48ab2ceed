-- Results: engine/results.rs in Lua. Each counts for its bytes and A_RESULT more; what all of them count for is a field of the
-- fleet's record. The sorted set has them oldest first, of those that expire together the lowest queue and id.

-- What a result counts for that expires then.
local function result_weight(entry, expires)
  return call('HSTRLEN', key.results, entry) - #expires - 1 + A_RESULT
end

-- Forgets the oldest: up to `limit` that have expired, or until they counted for `bytes`.
local function forget_results(limit, upto, bytes)
  local oldest = call('ZRANGEBYSCORE', key.result_ends, '-inf', upto, 'WITHSCORES', 'LIMIT', 0, limit)
  local gone, entries = 0, {}
  for at = 1, #oldest, 2 do
    if gone >= bytes then break end
    gone = gone + result_weight(oldest[at], text(tonumber(oldest[at + 1])))
    entries[#entries + 1] = oldest[at]
  end
  if #entries == 0 then return end
  call('ZREMRANGEBYRANK', key.result_ends, 0, #entries - 1)
  for from = 1, #entries, 1000 do
    call('HDEL', key.results, unpack(entries, from, math.min(from + 999, #entries)))
  end
  call('HINCRBY', key.meta, 'results', -gone)
end

-- Keeps a result, in the place of one that the message had before. One that is over the bound by itself is not kept.
local function keep_result(name, message, result, most)
  forget_results(EXPIRED_AT_ONCE, text(now), math.huge)
  local entry, expires, weight = name .. ' ' .. padded(message), text(now + RESULT_TTL_MS), #result + A_RESULT
  local former = call('ZSCORE', key.result_ends, entry)
  if former then
    call('HINCRBY', key.meta, 'results', -result_weight(entry, text(tonumber(former))))
    call('ZREM', key.result_ends, entry)
    call('HDEL', key.results, entry)
  end
  if weight > most then return end
  local over = call('HINCRBY', key.meta, 'results', weight) - most
  -- Each makes room for some of it; a few more where the bound was larger before.
  if over > 0 then forget_results(math.ceil(weight / A_RESULT) + EXPIRED_AT_ONCE, '+inf', over) end
  call('HSET', key.results, entry, expires .. ':' .. result)
  call('ZADD', key.result_ends, expires, entry)
end
