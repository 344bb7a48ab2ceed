-- Whole numbers as text, all digits: Lua's own conversion keeps only fourteen, which is exact below this.
local EXACT = 10 ^ 13
local function text(number)
  return string.format('%d', number)
end

-- Every key of a fleet, built in this one place from the root. All share its hash tag and so its slot. What is kept here
-- between two calls is only what follows from the root.
local call = nil
local root = nil
local key = {
  session = function(id) return root .. ':s:' .. id end,
  submits = function(id, page) return root .. ':n:' .. id .. ':' .. page end,
  claims = function(id) return root .. ':h:' .. id end,
  unreaped = function(id) return root .. ':z:' .. id end,
  carried = function(id) return root .. ':g:' .. id end,
  source = function(name) return root .. ':o:' .. name end,
  queue = function(name) return root .. ':q:' .. name end,
  counts = function(name) return root .. ':k:' .. name end,
  inbox = function(name, since, last) return root .. ':I:' .. name .. ':' .. text(since) .. ':' .. text(last) end,
  bundle = function(name, home) return root .. ':L:' .. name .. ':' .. home end,
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
  call = function(it) return root .. ':a:' .. it end,
  members = function(it) return root .. ':A:' .. it end,
  holders = function(it) return root .. ':H:' .. it end,
  followers = function(it) return root .. ':F:' .. it end,
  events = function(it) return root .. ':y:' .. it end,
  emit_keys = function(it) return root .. ':j:' .. it end,
  delays = function(it) return root .. ':D:' .. it end,
  compute_rights_of = function(id) return root .. ':B:' .. id end,
  awaiting = function(name) return root .. ':W:' .. name end,
  told = function(id) return root .. ':f:' .. id end,
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
  key.last_ids = root .. ':lastids'
  key.keys = root .. ':keys'
  key.key_ends = root .. ':keyends'
  key.marks = root .. ':marks'
  key.results = root .. ':results'
  key.result_ends = root .. ':resultends'
  key.cached = root .. ':recalled'
  key.cached_heads = root .. ':recalledheads'
  key.cached_ends = root .. ':recalledends'
  key.forgotten = root .. ':forgotten'
  key.invalidated_at = root .. ':forgottenat'
  key.compute_rights = root .. ':flights'
  key.cache_users = root .. ':recallers'
  key.joined = root .. ':joined'
  key.looks = root .. ':looks'
  key.call_ends = root .. ':callends'
end

-- Decimal text as sixteen digits, so that the order of bytes is the order of numbers.
local function padded(digits)
  return string.rep('0', 16 - #digits) .. digits
end
