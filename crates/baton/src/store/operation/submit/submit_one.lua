#!lua
-- Purpose: submit.lua for one short message without key and bookmark, as most come. Where nothing speaks against it, by
--          the fewest commands and arguments: into the inbox of its queue (inbox.lua), without the records that other calls
--          build.
-- KEYS: 1 `page of the session's submits queue bytes the queue may hold`, which are the same for most that a session pushes
--       to a queue (ways.lua)
-- ARGV: 1 length of that page (submits.lua) if this is the next submit; 2 the message as it lies there: `born|parcel`;
--       3 only if the sender does not know the store's time, which then is to be put before the bar
-- Returns: id | verdict@now if the time was not known | OK verdicts | STALE | TURN last | HELD ms
-- Idempotency: that of submit.lua, with the same numbers.
call = redis.call
local way, entry, time = ways[KEYS[1]] or find_way(KEYS[1]), ARGV[2], nil
if ARGV[3] then
  name_keys(way.fleet)
  time = store_time()
  entry = string.format('%013d', time) .. entry
end
local box, nth = way.box, 0
if box.open and box.stored <= way.near then nth = call('RPUSHX', box.key, entry) end
if nth == 0 then
  box.open = false
  local packed = call('GET', way.counts)
  if packed then
    local pushed, bytes, waiting, held, inbox, paused = struct.unpack(INTAKE, packed)
    if inbox ~= 0 and held == 0 and bytes <= way.near and pushed < EXACT
      and redis.acl_check_cmd('RPUSHX', way.submits) then
      if pushed ~= box.before or inbox ~= box.since then
        box.since, box.before, box.count = inbox, pushed, -1
        box.key = way.inbox .. text(inbox) .. ':' .. text(pushed)
      end
      box.stored, box.open = bytes, waiting == 0
      if waiting ~= 0 and paused == 0 then
        name_keys(way.fleet)
        wake_first(way.queue, way.counts)
      end
      nth = call('RPUSH', box.key, entry)
    end
  end
end
if nth > 0 then
  local id = box.before + nth
  local length = call('RPUSHX', way.submits, struct.pack(PACKED_ID, id))
  if length == lengths[ARGV[1]] then
    if nth == 1 then
      box.count, box.bytes = 1, #entry - BORN
    elseif nth == box.count + 1 then
      box.count, box.bytes = nth, box.bytes + #entry - BORN
    else
      box.count = -1
    end
    if nth >= MAX_INBOX or length > SUBMIT_PAGE then
      name_keys(way.fleet)
      -- It is stored. If a right is missing for this, the next call that comes by does it.
      if pcall(rights.demand) then
        if nth >= MAX_INBOX then
          begin(way.fleet)
          take_in(known_queue(way.queue))
        end
        if length > SUBMIT_PAGE then turn_page(way.session, way.page) end
      end
    end
    if time then return 's' .. text(id) .. '@' .. time end
    return id
  end
  -- The session is gone, or this is not its next submit: nothing has happened. A right that is missing must not keep that
  -- from being taken back, and looking for it before would cost every push.
  local may_pop = redis.acl_check_cmd('RPOP', box.key)
  for _, list in ipairs({ way.submits, box.key }) do
    if may_pop then call('RPOP', list) else call('LTRIM', list, 0, -2) end
  end
end
begin(way.fleet)
local last = last_submit(way.session)
if not last then return { 'STALE' } end
local queue = known_queue(way.queue)
local wait = held_queue(queue)
if wait then return wait end
local number = way.page * SUBMIT_PAGE + ARGV[1] - 1
if last + 1 ~= number then return answered_before(way.session, number, last) end
queue = open_queue(way.queue)
local bytes, verdict = #entry - BORN, nil
if is_full(queue, bytes, way.bound) or ids_used_up(queue, 1) then
  verdict = 'f'
else
  local first = queue.pushed + 1
  call('RPUSH', key.ready(way.queue), inbox_entry(first, entry))
  queue.pushed, queue.ready, queue.bytes = first, queue.ready + 1, queue.bytes + bytes
  -- More may come this way.
  if queue.inbox == 0 then queue.inbox = now end
  wake(queue, 1)
  write_counts(queue)
  verdict = 's' .. text(first)
end
keep_submit(way.session, number, verdict)
return time and verdict .. '@' .. time or { 'OK', verdict }
