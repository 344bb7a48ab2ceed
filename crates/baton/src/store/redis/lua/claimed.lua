-- A claim as text: `queue|word;word;…`. A word is a piece, or a run of singles (singles.lua). What other messages carry lies
-- behind each other in a text of its own (body.lua); `*at,length` behind a piece tells where.

-- The queue, the pieces and the runs, each with its place among the words. A piece keeps its word: most are written as they
-- were read, and a piece is never changed and then written.
local function read_claim(written)
  local bar = string.find(written, '|', 1, true)
  local pieces, runs, nth = {}, {}, 0
  for word, at, length in string.gmatch(string.sub(written, bar + 1), '([^;*]+)%*?(%d*),?(%d*)') do
    nth = nth + 1
    if string.byte(word) == 43 then
      runs[#runs + 1] = read_run(word)
      runs[#runs].nth = nth
    else
      local piece = read_piece(word)
      if at ~= '' then
        piece.at, piece.carried = tonumber(at), tonumber(length)
        word = word .. '*' .. at .. ',' .. length
      end
      piece.word = word
      piece.nth, pieces[#pieces + 1] = nth, piece
    end
  end
  return string.sub(written, 1, bar - 1), pieces, runs
end

-- The same where few of the pieces may be asked for: of single messages with a copy of their own only the id is read.
-- filled() reads the rest.
local function skim_claim(written)
  local bar = string.find(written, '|', 1, true)
  local pieces, others = {}, {}
  for word in string.gmatch(string.sub(written, bar + 1), '[^;]+') do
    local first = string.match(word, '^%d+,0,(%d+),1,')
    if first then
      pieces[#pieces + 1] = { first = tonumber(first), len = 1, word = word, is_skimmed = true }
    else
      others[#others + 1] = word
    end
  end
  local queue, more, runs = read_claim(string.sub(written, 1, bar) .. table.concat(others, ';'))
  for _, piece in ipairs(more) do pieces[#pieces + 1] = piece end
  return queue, pieces, runs
end

local function filled(piece)
  local attempts, losses, born, part, at, length =
    string.match(piece.word, '^%d+,0,%d+,1,(%d+),(%d+),(%d+)([cj]?)%*?(%d*),?(%d*)$')
  if not born then error({ err = 'DAMAGED unreadable piece ' .. string.sub(piece.word, 1, 80) }) end
  return {
    parcel = piece.first, size = 0, first = piece.first, len = 1, attempts = tonumber(attempts),
    losses = tonumber(losses), born = tonumber(born), at = tonumber(at), carried = tonumber(length),
    part = part ~= '' and part or nil,
  }
end

local function claimed_piece(written, at, length)
  return string.format('%s*%d,%d', written, at, length)
end

-- Pieces as they are, and runs among them in the order of ids.
local function write_claim(queue, pieces, runs)
  local all, words = pieces, {}
  if #runs > 0 then
    all = { unpack(runs) }
    for _, piece in ipairs(pieces) do all[#all + 1] = piece end
    table.sort(all, by_id)
  end
  for i, it in ipairs(all) do
    words[i] = it.word or it.is_run and write_run(it) or write_piece(it)
    if it.carried and not it.word then words[i] = claimed_piece(words[i], it.at, it.carried) end
  end
  return queue .. '|' .. table.concat(words, ';')
end
