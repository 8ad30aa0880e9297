-- One step of a cache that processes share. A key holds a value, or else the lock of whoever is loading it.
--
-- KEYS[1]  'V' and the value, expiring when it does; or 'L' and the token of the lock's holder
-- ARGV     'claim', token, ms of the lock: answers the value, or else takes the lock where it is free
--          'store', the value, Unix ms of its expiry: keeps it, unless another was kept before
--          'release', token: gives the lock back, where it still is the token's
-- Returns  {'value', the value, ms that it has left}, {'claimed'}, {'locked'}, {'stored', '', ms that it has left}
--          or {'done'}
local key, verb, parameter = KEYS[1], ARGV[1], ARGV[2]
local held = redis.call('GET', key) or ''

if verb == 'release' then
  if held == 'L' .. parameter then redis.call('DEL', key) end
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
