-- Every key of a fleet, built in this one place from the root. All share its hash tag and so its slot. What is kept here
-- between two calls is only what follows from the root.
local call = nil
local root = nil
local key = {
  session = function(id) return root .. ':s:' .. id end,
  submits = function(id) return root .. ':n:' .. id end,
  claims = function(id) return root .. ':h:' .. id end,
  estate = function(id) return root .. ':z:' .. id end,
  carried = function(id) return root .. ':g:' .. id end,
  source = function(name) return root .. ':o:' .. name end,
  queue = function(name) return root .. ':q:' .. name end,
  counts = function(name) return root .. ':k:' .. name end,
  inbox = function(name) return root .. ':i:' .. name end,
  ready = function(name) return root .. ':r:' .. name end,
  suspects = function(name) return root .. ':u:' .. name end,
  delayed = function(name) return root .. ':d:' .. name end,
  parcel = function(name, first) return root .. ':b:' .. name .. ':' .. first end,
  own = function(name, id) return root .. ':c:' .. name .. ':' .. id end,
  gone = function(name, first) return root .. ':m:' .. name .. ':' .. first end,
  thinned = function(name, first) return root .. ':p:' .. name .. ':' .. first end,
  -- Of formats up to 4.
  left = function(name) return root .. ':l:' .. name end,
  dead_order = function(name) return root .. ':e:' .. name end,
  dead = function(name) return root .. ':x:' .. name end,
  waiters = function(name) return root .. ':v:' .. name end,
  wakes = function(id) return root .. ':w:' .. id end,
  staged = function(id, place) return root .. ':t:' .. id .. ':' .. place end,
}

local function name_keys(fleet)
  if root == fleet then return end
  root = fleet
  key.meta = root
  key.hold = root .. ':hold'
  key.sessions = root .. ':sessions'
  key.leases = root .. ':leases'
  key.nodes = root .. ':nodes'
  key.sources = root .. ':sources'
  key.queues = root .. ':queues'
  key.keys = root .. ':keys'
  key.key_ends = root .. ':keyends'
  key.marks = root .. ':marks'
  key.results = root .. ':results'
  key.result_ends = root .. ':resultends'
end

-- The root of the fleet that a key belongs to.
local function fleet_of(one)
  return string.match(one, '^{[^}]*}')
end

-- Whole numbers as text, all digits: Lua's own conversion keeps only fourteen, which is exact below this.
local EXACT = 10 ^ 13
local function text(number)
  return string.format('%d', number)
end

-- Decimal text as sixteen digits, so that the order of bytes is the order of numbers.
local function padded(digits)
  return string.rep('0', 16 - #digits) .. digits
end
