-- The fleet clock and the leases on it: engine/clock.rs in Lua. Joins, beats and reaps advance it, beats extend leases.
local now = nil

-- Advances the fleet clock by the store time that passed, at most half the smallest lease, never backwards; what it
-- shows.
local function advance()
  local stored = call('HMGET', key.meta, 'clock', 'last', 'least')
  local clock, last = tonumber(stored[1] or 0), tonumber(stored[2] or 0)
  if now ~= last then
    if now > last then
      clock = clock + math.min(now - last, math.floor(tonumber(stored[3] or 0) / 2))
    end
    call('HSET', key.meta, 'clock', text(clock), 'last', text(now))
  end
  return clock
end

-- Keeps the smallest lease where the clock finds it; to be called when a session has come or gone.
local function keep_least()
  call('HSET', key.meta, 'least', call('ZRANGE', key.leases, 0, 0, 'WITHSCORES')[2] or '0')
end

-- The lease of a session followed by the fields asked for; nothing if it is gone.
local function visit(id, ...)
  local record = call('HMGET', key.session(id), 'lease', ...)
  return record[1] and record or nil
end

-- The refusal of calls that move messages while a recount holds the store still; nothing without a hold. One that
-- begins in the future is of before the clock was set back, and over: its end would be as far off as that step.
local function held()
  local hold = call('GET', key.hold)
  if not hold then return nil end
  local from, upto = string.match(hold, '^(%d+) (%d+)')
  if tonumber(from) <= now and tonumber(upto) > now then return { 'HELD', text(tonumber(upto) - now) } end
  return nil
end

-- The same where only one queue is concerned, which knows whether there may be a hold.
local function held_queue(queue)
  if queue and queue.held == 0 then return nil end
  local wait = held()
  if queue and not wait then queue.held = 0 end
  return wait
end

-- The holder named, if its session still exists: a baton or a drain is valid just as long as that.
local function alive(holder)
  if holder and holder ~= '' and call('EXISTS', key.session(holder)) == 1 then return holder end
  return nil
end
