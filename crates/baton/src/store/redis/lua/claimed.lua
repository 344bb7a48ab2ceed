-- A claim as text: `queue|word;word;…`. A word is a span, or a run of singles (singles.lua). What other messages carry lies
-- behind each other in a text of its own (body.lua); `*at,length` behind a span tells where.

-- The queue, the spans and the runs, each with its place among the words. A span keeps its word: most are written as they
-- were read, and a span is never changed and then written.
local function read_claim(written)
  local bar = string.find(written, '|', 1, true)
  local spans, runs, nth = {}, {}, 0
  for word, at, length in string.gmatch(string.sub(written, bar + 1), '([^;*]+)%*?(%d*),?(%d*)') do
    nth = nth + 1
    if string.byte(word) == 43 then
      runs[#runs + 1] = read_run(word)
      runs[#runs].nth = nth
    else
      local span = read_span(word)
      if at ~= '' then
        span.at, span.carried = tonumber(at), tonumber(length)
        word = word .. '*' .. at .. ',' .. length
      end
      span.word = word
      span.nth, spans[#spans + 1] = nth, span
    end
  end
  return string.sub(written, 1, bar - 1), spans, runs
end

-- The same where few of the spans may be asked for: of single messages with a copy of their own only the id is read.
-- filled() reads the rest.
local function skim_claim(written)
  local bar = string.find(written, '|', 1, true)
  local spans, others = {}, {}
  for word in string.gmatch(string.sub(written, bar + 1), '[^;]+') do
    local first = string.match(word, '^%d+,0,(%d+),1,')
    if first then
      spans[#spans + 1] = { first = tonumber(first), len = 1, word = word, is_skimmed = true }
    else
      others[#others + 1] = word
    end
  end
  local queue, more, runs = read_claim(string.sub(written, 1, bar) .. table.concat(others, ';'))
  for _, span in ipairs(more) do spans[#spans + 1] = span end
  return queue, spans, runs
end

local function filled(span)
  local attempts, crashes, born, role, at, length =
    string.match(span.word, '^%d+,0,%d+,1,(%d+),(%d+),(%d+)([cj]?)%*?(%d*),?(%d*)$')
  if not born then error({ err = 'DAMAGED unreadable span ' .. string.sub(span.word, 1, 80) }) end
  return {
    parcel = span.first, size = 0, first = span.first, len = 1, attempts = tonumber(attempts),
    crashes = tonumber(crashes), born = tonumber(born), at = tonumber(at), carried = tonumber(length),
    role = role ~= '' and role or nil,
  }
end

local function claimed_span(written, at, length)
  return string.format('%s*%d,%d', written, at, length)
end

-- Spans as they are, and runs among them in the order of ids.
local function write_claim(queue, spans, runs)
  local all, words = spans, {}
  if #runs > 0 then
    all = { unpack(runs) }
    for _, span in ipairs(spans) do all[#all + 1] = span end
    table.sort(all, by_id)
  end
  for i, it in ipairs(all) do
    words[i] = it.word or it.is_run and write_run(it) or write_span(it)
    if it.carried and not it.word then words[i] = claimed_span(words[i], it.at, it.carried) end
  end
  return queue .. '|' .. table.concat(words, ';')
end
