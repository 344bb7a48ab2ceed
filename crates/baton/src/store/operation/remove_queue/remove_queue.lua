#!lua flags=allow-oom
-- Purpose: forgets a queue step by step: looked at first, then results, keys and bookmarks in pages, its record last.
-- KEYS: 1 root
-- ARGV: 1 queue, 2 look|results|keys|marks|forget, 3 where a page begins (results, keys, marks)
-- Returns: OK where the next page begins (0 none) | QUEUEINUSE queue session | QUEUENOTEMPTY queue messages | HELD ms
--          | NEWER found known | OLDER found known | DESTROYING
-- Idempotency: a repeat finds nothing to remove.
local unfit = unfit_fleet()
if unfit then return unfit end
local name, what = ARGV[1], ARGV[2]
local wait = held()
if wait then return wait end
local queue = known_queue(name)
if not queue then return { 'OK', '0' } end
if what == 'look' or what == 'forget' then
  local user
  for _, id in ipairs(call('ZRANGE', key.sessions, 0, -1)) do
    local session = call('HMGET', key.session(id), 'kind', 'queues', 'offers')
    local uses = session[1] == 'n' and string.find(',' .. session[2] .. ',', ',' .. name .. ',', 1, true)
    for _, offer in ipairs(session[1] == 'n' and read_offers(session[3] or '') or {}) do
      uses = uses or offer.queue == name
    end
    if uses and (not user or id < user) then user = id end
  end
  if user then return { 'QUEUEINUSE', name, user } end
  take_in(queue)
  local messages = queue.ready + queue.delayed + queue.in_flight + queue.dead
  if messages > 0 then return { 'QUEUENOTEMPTY', name, text(messages) } end
  if what == 'look' then return { 'OK', '0' } end
  -- Whatever became of its messages, they are removed now: so the books of a later queue of the name balance.
  local gone = queue.done + queue.drained + queue.cancelled
  local sum = math.fmod(queue.done_sum + queue.drained_sum + queue.cancelled_sum, MODULUS)
  call('HSET', key.last_ids, name, text(queue.pushed) .. ',' .. text(gone) .. ',' .. text(sum))
  call('SREM', key.queues, name)
  close_box(name)
  call('UNLINK', key.counts(name), key.queue(name), key.ready(name), key.suspects(name), key.delayed(name), key.dead(name),
    key.dead_order(name))
  return { 'OK', '0' }
end
local page = call('HSCAN', key[what], ARGV[3], 'COUNT', SWEPT_AT_ONCE)
local found, freed = page[2], 0
for at = 1, #found, 2 do
  local entry, value = found[at], found[at + 1]
  if what == 'results' and string.sub(entry, 1, #name + 1) == name .. ' ' then
    freed = freed + result_weight(entry, string.match(value, '^%d+'))
    call('ZREM', key.result_ends, entry)
    call('HDEL', key.results, entry)
  elseif what == 'keys' and string.sub(value, 1, #name + 1) == name .. ',' then
    call('ZREM', key.key_ends, entry)
    call('HDEL', key.keys, entry)
  elseif what == 'marks' and string.match(value, '^%d+,[^,]*,(.+)$') == name then
    call('HDEL', key.marks, entry)
  end
end
if freed > 0 then call('HINCRBY', key.meta, 'results', -freed) end
return { 'OK', page[1] }
