-- The fleet clock, and the touch that every call with a session begins with: engine/clock.rs in Lua.
local now = nil

-- Advances the fleet clock by the store time that passed, at most half the smallest lease, never backwards.
local function advance()
  local stored = call('HMGET', key.meta, 'clock', 'last', 'hold_until', 'least', 'hold_from')
  local clock, last = tonumber(stored[1] or 0), tonumber(stored[2] or 0)
  if now ~= last then
    if now > last then
      clock = clock + math.min(now - last, math.floor(tonumber(stored[4] or 0) / 2))
    end
    call('HSET', key.meta, 'clock', text(clock), 'last', text(now))
  end
  return { clock = clock, hold_until = tonumber(stored[3] or 0), hold_from = tonumber(stored[5] or 0) }
end

-- Keeps the smallest lease where the clock finds it; to be called when a session has come or gone.
local function keep_least()
  call('HSET', key.meta, 'least', call('ZRANGE', key.leases, 0, 0, 'WITHSCORES')[2] or '0')
end

-- Advances the clock. Gives the lease of a session followed by the fields asked for, and the clock; nothing, with
-- nothing changed, if the session is gone.
local function visit(id, ...)
  local record = call('HMGET', key.session(id), 'lease', ...)
  if not record[1] then return nil end
  return record, advance()
end

-- The session that this call has shown to be alive, with the new end of its lease; `kept` once that is written.
local touched = nil

-- The same, and extends the lease. Its end is written with the fields of keep_session(), at the latest when the call is
-- over. The order of ends in key.sessions follows with the next beat: until then it is at worst too early there.
local function touch(id, ...)
  local record, meta = visit(id, ...)
  if not record then return nil end
  touched = { id = id, expires = text(meta.clock + tonumber(record[1])) }
  return record, meta
end

-- Writes fields of the session that was touched.
local function keep_session(...)
  touched.kept = true
  call('HSET', key.session(touched.id), 'expires', touched.expires, ...)
end

-- When the lease of a session ends.
local function lease_end(id)
  if touched and touched.id == id then return tonumber(touched.expires) end
  return tonumber(call('HGET', key.session(id), 'expires') or 0)
end

-- The refusal of calls that move messages while a recount holds the store still; nothing without a hold. One that
-- begins in the future is of before the clock was set back, and over: its end would be as far off as that step.
local function held(meta)
  if meta.hold_from <= now and meta.hold_until > now then return { 'HELD', text(meta.hold_until - now) } end
  return nil
end

-- The holder named, if its session still exists: a baton or a drain is valid just as long as that.
local function alive(holder)
  if holder and holder ~= '' and call('EXISTS', key.session(holder)) == 1 then return holder end
  return nil
end
