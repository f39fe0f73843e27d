-- Makes a mark what it shall be, if there is none or if it is the caller's own.
-- KEYS[1] the mark; ARGV[1] the caller's own, ARGV[2] what it shall be, ARGV[3] for how many milliseconds.
-- Returns what is there instead, or an empty text, and how many milliseconds that has left.
local found = redis.call('GET', KEYS[1])
if found == ARGV[2] then
  -- A command that is sent again because its answer was lost comes here, and so does every extension:
  -- unlike SET, this is allowed when memory is short.
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
elseif not found or found == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
else
  return {found, redis.call('PTTL', KEYS[1])}
end
return {'', 0}
