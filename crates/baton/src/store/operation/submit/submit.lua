#!lua
-- Purpose: stores messages from outside, each submission judged on its own, and moves a bookmark in the same step.
--          Not allowed at maxmemory: refused whole.
-- KEYS: 1 root
-- ARGV: 1 session, 2 submit number, 3 bytes a queue may hold, 4 keys the fleet may keep,
--       5 bookmark key ('' none), 6 place it must stand at `lines,digest`, 7 place afterwards,
--       8 bytes by queue `queue,bytes;…` in the order of names, then five for each submission:
--       queue, messages (of one that begins a call `1c`, after how long it is cancelled without a follower, `,1` if it is
--       shared), key ('' none), its proof, parcel (see redis/lua/intake.lua)
-- Returns: OK verdicts | STALE | TURN last | BOOKMARK place | FULL queue bytes | HELD ms
-- Idempotency: by number; the answers to the last SUBMIT_WINDOW are kept (redis/lua/submits.lua).
local id, submit_no = ARGV[1], tonumber(ARGV[2])
local last = last_submit(id)
if not last then return { 'STALE' } end
local wait = held()
if wait then return wait end
if submit_no ~= last + 1 then return answered_before(id, submit_no, last) end
local weights = {}
for i = 9, #ARGV, 5 do
  weights[i] = weigh(id, ARGV[i + 4])
  if not known_queue(ARGV[i]) then foreign.refuse_queue(ARGV[i]) end
end
local max_queue_bytes, max_keys, mark = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
if mark ~= '' then
  local stands = string.match(call('HGET', key.marks, mark) or START, '^%d+,[^,]*')
  if stands ~= ARGV[6] then return { 'BOOKMARK', stands } end
  for name, bytes in string.gmatch(ARGV[8], '([^,;]+),(%d+)') do
    local queue = known_queue(name)
    if queue and is_full(take_in(queue), tonumber(bytes), max_queue_bytes) then return { 'FULL', name, text(queue.bytes) } end
  end
  call('HSET', key.marks, mark, ARGV[7] .. ',' .. (ARGV[9] or ''))
end
local keyed = 0
for i = 9, #ARGV, 5 do
  if ARGV[i + 2] ~= '' then keyed = keyed + 1 end
end
local in_exchange = make_room(keyed)
local full, verdicts = {}, {}
for i = 9, #ARGV, 5 do
  local name, count, submission_key, proof, parcel = ARGV[i], tonumber(ARGV[i + 1]) or 1, ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  local role, linger, share = read_calling(ARGV[i + 1])
  local queue = open_queue(name)
  local verdict = seen_before(submission_key, proof, name, role, share)
  if not verdict and submission_key ~= '' and not in_exchange and call('HLEN', key.keys) >= max_keys then verdict = 'k' end
  if not verdict then
    local over_bound = mark == '' and is_full(queue, weights[i], max_queue_bytes)
    if full[name] or over_bound or ids_used_up(queue, count) then
      full[name] = true
      verdict = 'f'
    else
      local first = deposit(id, queue, count, parcel, weights[i], role)
      keep_key(submission_key, proof, queue, first)
      if role then
        calls.begin(name, first, linger)
        verdict = 'b' .. text(first) .. ',' .. text(now)
      else
        verdict = 's' .. text(first)
      end
    end
  end
  verdicts[#verdicts + 1] = verdict
end
close_queues()
local answer = table.concat(verdicts, ';')
keep_submit(id, submit_no, answer)
return { 'OK', answer }
