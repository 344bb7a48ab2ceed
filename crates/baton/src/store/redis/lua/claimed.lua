-- A claim as text: `queue|word;word;…`. A word is a piece, or a run of singles (singles.lua). What other messages carry lies
-- behind each other in a text of its own (body.lua); `*at,length` behind a piece tells where.

-- The queue, the pieces and the runs, each with its place among the words.
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
      if at ~= '' then piece.at, piece.carried = tonumber(at), tonumber(length) end
      piece.nth, pieces[#pieces + 1] = nth, piece
    end
  end
  return string.sub(written, 1, bar - 1), pieces, runs
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
    words[i] = it.is_run and write_run(it) or write_piece(it)
    if it.carried then words[i] = claimed_piece(words[i], it.at, it.carried) end
  end
  return queue .. '|' .. table.concat(words, ';')
end
