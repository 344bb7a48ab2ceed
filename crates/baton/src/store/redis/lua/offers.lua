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

-- The first session by id that offers a source as `like(session, offer)` wants it; nothing if there is none.
local function offering(source, like)
  local first
  for _, id in ipairs(call('ZRANGE', key.sessions, 0, -1)) do
    if not first or id < first then
      for _, offer in ipairs(read_offers(call('HGET', key.session(id), 'offers') or '')) do
        if offer.source == source and like(id, offer) then first = id end
      end
    end
  end
  return first
end
