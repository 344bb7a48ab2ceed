-- The counters of a queue that most calls move: packed in one text, so that a call reads and writes them by one command
-- each. The others are fields of a hash.
local MOVING = { pushed = true, bytes = true, waiting = true, held = true, inbox = true, paused = true, ready = true,
  delayed = true, in_flight = true, done = true, done_sum = true }

-- `waiting` is 0 only if nobody waits for the queue, `held` only if no recount holds it, `inbox` until it may have
-- one, and then since when it may; two of them in these places of the text. Those that a single push needs come first.
local COUNTS, INTAKE, WAITING_AT, HELD_AT = '<ddddddddddd', '<dddddd', 16, 24
local function write_counts(it)
  call('SET', key.counts(it.name), struct.pack(COUNTS, it.pushed, it.bytes, it.waiting, it.held, it.inbox, it.paused,
    it.ready, it.delayed, it.in_flight, it.done, it.done_sum))
end
