-- One atomic step of a cache that processes share. A key holds a value, or the lock of the process that loads the value.
--
-- KEYS[1]  'V' and the value, with the expiry of the value; or 'L' and the token of the process that has the lock
-- ARGV     'claim', token, lock period in ms: returns the value if there is one, or takes the lock if it is free
--          'store', value, expiry in Unix ms: stores the value, unless another value is stored already
--          'release', token: removes the lock if this token still has it
--          'drop': removes the value
-- Returns  {'value', the value, ms until it expires}, {'claimed'}, {'locked'}, {'stored', '', ms until it expires}
--          or {'done'}
local key, verb, parameter = KEYS[1], ARGV[1], ARGV[2]
local held = redis.call('GET', key) or ''

if verb == 'release' then
  if held == 'L' .. parameter then redis.call('DEL', key) end
  return {'done'}
end

if verb == 'drop' then
  if held:sub(1, 1) == 'V' then redis.call('DEL', key) end
  return {'done'}
end

if held:sub(1, 1) == 'V' then
  local left = redis.call('PTTL', key)
  if left > 0 then return {'value', held:sub(2), left} end
  held = ''
end

if verb == 'store' then
  redis.call('SET', key, 'V' .. parameter, 'PXAT', ARGV[3])
  return {'stored', '', redis.call('PTTL', key)}
end
if held ~= '' then return {'locked'} end
redis.call('SET', key, 'L' .. parameter, 'PX', ARGV[3])
return {'claimed'}
