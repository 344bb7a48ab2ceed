-- Offers of sources as text: `source,queue,definition;…`, and what makes an offer mean a stored source.
local function read_offers(offers)
  local list = {}
  for source, queue, definition in string.gmatch(offers, '([^,;]+),([^,;]+),([^,;]+)') do
    list[#list + 1] = { source = source, queue = queue, definition = definition }
  end
  return list
end

-- A rewound source (its definition is empty) takes any offer.
local function defined_as(definition, queue, offer)
  return not definition or definition == '' or (definition == offer.definition and queue == offer.queue)
end
