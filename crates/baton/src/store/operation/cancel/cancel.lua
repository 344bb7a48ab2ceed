#!lua flags=allow-oom
-- Purpose: marks a call: the next step of each of its messages ends it. Those who hold some are told by their beats; those
--          that are delayed end here, some with each such call.
-- KEYS: 1 root
-- ARGV: 1 call, 2 1 if only one is meant that has had no follower for as long as it said
-- Returns: MARKED | LEFT (marked, and more is delayed) | ENDED | FOLLOWED | UNKNOWN | OTHERCALL | NEWER found known | OLDER found known | DESTROYING
-- Idempotency: a repeat finds it marked, and ends more of what is delayed.
local unfit = unfit_fleet()
if unfit then return unfit end
local record, other = calls.named(ARGV[1])
if not record then return other or { 'UNKNOWN' } end
local function end_delayed()
  return { calls.end_delayed(record) and 'LEFT' or 'MARKED' }
end
if record.marked == 1 then
  if record.delayed > 0 then return end_delayed() end
  return { record.ended ~= 0 and 'ENDED' or 'MARKED' }
end
if record.ended ~= 0 then return { 'ENDED' } end
if ARGV[2] == '1' then
  if record.linger == 0 then return { 'FOLLOWED' } end
  if calls.furthest(record) then record.followed = now end
  local upto = record.followed + record.linger - 1
  if upto > now then
    call('ZADD', key.looks, text(upto), record.name)
    calls.write(record)
    return { 'FOLLOWED' }
  end
end
calls.mark(record)
calls.write(record)
if record.delayed > 0 then return end_delayed() end
return { 'MARKED' }
