-- Removes a mark if it begins with what the caller's own begins with.
-- KEYS[1] the mark; ARGV[1] the beginning. Returns what is there instead, or an empty text.
local found = redis.call('GET', KEYS[1])
if not found then
  return ''
end
if string.sub(found, 1, #ARGV[1]) ~= ARGV[1] then
  return found
end
redis.call('DEL', KEYS[1])
return ''
