#!lua flags=allow-oom
-- Purpose: marks a call: the next step of each of its messages ends it. Those who hold some are told by their beats.
-- KEYS: 1 root
-- ARGV: 1 call, 2 1 if only one is meant that has had no follower for as long as it said
-- Returns: MARKED | ENDED | FOLLOWED | UNKNOWN | OTHERCALL | NEWER found known | OLDER found known | PURGING
-- Idempotency: a repeat finds it marked.
local unfit = unfit_fleet()
if unfit then return unfit end
local record, other = calls.named(ARGV[1])
if not record then return other or { 'UNKNOWN' } end
if record.ended ~= 0 then return { 'ENDED' } end
if record.marked == 1 then return { 'MARKED' } end
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
return { 'MARKED' }
