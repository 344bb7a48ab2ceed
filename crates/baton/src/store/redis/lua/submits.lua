-- The submits of a session: their answers in lists, a page of SUBMIT_PAGE numbers each, behind one element that is always
-- there. So the length of the last page tells the last number, and a list that is there tells that the session is: one
-- command (RPUSHX) checks both and keeps the answer. A page is begun when the one before it is full; that one is kept until
-- then, so the last SUBMIT_WINDOW answers are there. Which page is the last stands in the record of the session.
-- An answer is the text of its verdicts, or the id of one message that was stored, packed; the first byte tells which.
local PACKED_ID = '>I8'

local function open_submits(id)
  call('RPUSH', key.submits(id, '0'), '')
end

local function remove_submits(id, page)
  call('UNLINK', key.submits(id, page), key.submits(id, text(math.max(page - 1, 0))))
end

-- The page of a number, and its place there.
local function submit_place(number)
  local page = math.floor((number - 1) / SUBMIT_PAGE)
  return text(page), number - page * SUBMIT_PAGE
end

-- Begins the page behind a full one.
local function turn_page(id, page)
  local following = text(page + 1)
  call('HSET', key.session(id), 'page', following)
  call('RPUSH', key.submits(id, following), '')
  if tonumber(page) > 0 then call('UNLINK', key.submits(id, text(page - 1))) end
end

-- The number of a session's last submit; nothing if it is gone. A full page is turned: who filled it may have lacked a right.
local function last_submit(id)
  local page = call('HGET', key.session(id), 'page')
  if not page then return nil end
  local length = call('LLEN', key.submits(id, page))
  if length > SUBMIT_PAGE then turn_page(id, page) end
  return page * SUBMIT_PAGE + length - 1
end

-- Keeps the answer to the number behind the last.
local function keep_submit(id, number, answer)
  local page, place = submit_place(number)
  call('RPUSH', key.submits(id, page), answer)
  if place == SUBMIT_PAGE then turn_page(id, page) end
end

-- The answer to a submit whose number is not the one behind the last: the one that was kept, or that it is out of turn.
local function answered_before(id, number, last)
  if number < 1 or number > last or number <= last - SUBMIT_WINDOW then return { 'TURN', text(last) } end
  local page, place = submit_place(number)
  local kept = call('LINDEX', key.submits(id, page), place)
  if string.byte(kept) == 0 then kept = 's' .. text((struct.unpack(PACKED_ID, kept))) end
  return { 'OK', kept }
end
