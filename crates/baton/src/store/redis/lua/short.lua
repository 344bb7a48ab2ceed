-- Short ways: what most claims and reports are, by the fewest commands. Each looks at all that could speak against it before
-- it writes anything, and then gives nothing: the long way gives the same answer and leaves the same behind. A missing right
-- speaks against it too. What wakes others comes last: refused there, a call has done all else.
-- Counts are written over those that were read (SETRANGE), which costs half of a SET.

-- Claims of a queue all of whose ready messages lie in its inbox, under the number behind the highest used, with none below
-- it unused; `written` are the numbers of the session for the queue. Nothing may be due, and what fits must not be a matter
-- of bytes. Gives the answer: `+claim number queue rest`, then each message as it lay in its line.
local function claim_inbox(id, name, written, claim_no, n, budget)
  local high, waited = string.match(written, '^(%d+)||(w?)')
  local counts = key.counts(name)
  local packed = high and high + 1 == tonumber(claim_no) and call('GET', counts)
  if not packed then return nil end
  local pushed, bytes, waiting, held, inbox, paused, ready, delayed, in_flight, done, done_sum =
    struct.unpack(COUNTS, packed)
  local most = math.min(n, CHUNK)
  if inbox == 0 or held ~= 0 or paused ~= 0 or ready ~= 0 or pushed >= EXACT or most * CARRIED > tonumber(budget) then
    return nil
  end
  local at, next_due = nil, nil
  if delayed ~= 0 then
    at, next_due = store_time(), tonumber(call('ZRANGE', key.delayed(name), 0, 0, 'WITHSCORES')[2])
    if not next_due or next_due <= tonumber(at) then return nil end
  end
  local entries = key.inbox(name, inbox, pushed)
  local allows = redis.acl_check_cmd
  if not (allows('HSET', counts) and allows('RENAME', entries) and allows('SETRANGE', counts)) then return nil end
  local given = most == 1 and { call('LPOP', entries) or nil } or call('LPOP', entries, most)
  local count = given and #given or 0
  if count == 0 then return nil end

  local place, each, first, fields, weight = claim_no .. ' ' .. name, #given[1], nil, {}, weigh_entries(given)
  for nth = count, 1, -1 do
    local entry = given[nth]
    first = pushed + nth .. ''
    if #entry ~= each then each = nil end
    entry = first .. ',1,' .. entry
    given[nth + 1], fields[2 * nth - 1], fields[2 * nth] = entry, first .. ' ' .. place, entry
  end
  local singles = count == 1 and '1' or count .. ''
  fields[2 * count + 1], fields[2 * count + 2] = left_at(place), singles
  call('HSET', key.carried(id), unpack(fields))
  call('HSET', key.claims(id), place, name .. '|+' .. first .. ',' .. singles .. ',' .. (each and each - BORN or ''))

  local more, rest, left = count == tonumber(n), 'more', count == most and pass_inbox(name, inbox, pushed, count, weight) or 0
  local wakes = more and waiting ~= 0 and (left > 0 or next_due and next_due <= at + SOON_MS)
  if not more then
    at = at or store_time()
    waiting, rest = 1, next_due and text(next_due - at) or ''
  end
  if left == 0 or waiting ~= 0 then close_box(name) end
  call('SETRANGE', counts, 0, struct.pack(COUNTS, pushed + count, bytes + weight, waiting, held, inbox, paused, ready, delayed,
    in_flight + count, done, done_sum))
  call('HSET', key.session(id), 'c:' .. name, claim_no .. (more and '||' or '||w'))
  if wakes then wake_first(name, counts) end
  if not more then
    call('ZADD', key.waiters(name), 'NX', at, id)
  elseif waited ~= '' then
    call('ZREM', key.waiters(name), id)
  end
  given[1] = '+' .. place .. ' ' .. rest
  return given
end

-- Settles singles of a claim as done, if they are of one run that is all of its text, and no recount may hold the queue;
-- false, and nothing changed, if not.
local function settle_singles(id, claim_no, name, first, len)
  local place, counts = claim_no .. ' ' .. name, key.counts(name)
  local written, packed = call('HGET', key.claims(id), place), call('GET', counts)
  if not written or not packed then return false end
  local from, size, each = string.match(written, '^%+(%d+),(%d+),(%d*)$', #name + 2)
  if not from then return false end
  local pushed, bytes, waiting, held, inbox, paused, ready, delayed, in_flight, done, done_sum =
    struct.unpack(COUNTS, packed)
  local message, count = tonumber(first), tonumber(len)
  if held ~= 0 or message < tonumber(from) or message + count > from + size then return false end
  if not redis.acl_check_cmd('SETRANGE', counts) then return false end
  local is_all, carried, left = count == tonumber(size), key.carried(id), left_at(place)
  if is_all and call('HGET', carried, left) ~= size or not is_all and not redis.acl_check_cmd('HINCRBY', carried) then return false end
  local gone = each ~= '' and count * each or 0
  if not is_all or each == '' then
    for _, entry in ipairs(read_singles(id, place, message, count)) do
      if not entry then return false end
      if each == '' then gone = gone + #entry - string.find(entry, '|', 1, true) end
    end
  end
  if not is_all then
    if remove_singles(id, place, places_of(place, message, count)) == 0 then call('HDEL', key.claims(id), place) end
  else
    if count == 1 then
      call('HDEL', carried, left, first .. ' ' .. place)
    else
      call('HDEL', carried, left, unpack(places_of(place, message, count)))
    end
    call('HDEL', key.claims(id), place)
  end
  -- As lighten() does.
  bytes = ready + delayed + in_flight == count and 0 or math.max(bytes - gone, 0)
  done_sum = math.fmod(done_sum + id_sum(message, count), MODULUS)
  call('SETRANGE', counts, 0, struct.pack(COUNTS, pushed, bytes, waiting, held, inbox, paused, ready, delayed,
    in_flight - count, done + count, done_sum))
  return true
end
