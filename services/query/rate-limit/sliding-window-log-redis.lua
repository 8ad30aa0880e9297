-- One atomic request to a bucket's sliding-window log. Redis's own clock decides.
--
-- The windows have no TTL: when its memory is full, a Redis with a volatile-* policy evicts keys with a TTL and no others,
-- and a window that is lost admits its hits twice. So each hit removes two empty windows, of any buckets.
--
-- KEYS[1]  a sorted set: the hits that count, scored by the millisecond at which they were admitted
-- KEYS[2]  a sorted set: the keys of all windows, scored by the millisecond after which none of their hits counts
-- ARGV     1 limit, 2 length of the window (ms), 3 deadline (Unix ms), 4 id of the hit;
--          then the id and the Unix ms of each hit that was admitted before and may be missing here
-- Returns  1 or 0 (admitted or not), the hits that count, the ms of the hit that makes room when it expires, the time.
--          The first number is -1 if the deadline has passed: the caller has stopped waiting, and nothing was changed.
local key, windows = KEYS[1], KEYS[2]
local limit, window, deadline, id = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if now > deadline then return {-1, 0, 0, now} end

-- The first write only removes, so Redis runs the script to its end even if its memory is full.
redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. now - window)
-- If the clock was set back, hits with a future time would count for too long. Give them the present time.
for _, future in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. now, '+inf')) do
  redis.call('ZADD', key, now, future)
end

for at = 5, #ARGV, 2 do
  local time = math.min(tonumber(ARGV[at + 1]), now)
  if time >= now - window then redis.call('ZADD', key, 'NX', time, ARGV[at]) end
end
-- Keep only the newest hits up to the limit: there is no room before the oldest of them expires.
redis.call('ZREMRANGEBYRANK', key, 0, -limit - 1)

local count = redis.call('ZCARD', key)
local allowed = count < limit
if allowed then
  redis.call('ZADD', key, now, id)
  count = count + 1
end
-- One second longer than hits count, so that rounding loses none.
redis.call('ZADD', windows, now + window + 1000, key)
for _, empty in ipairs(redis.call('ZRANGEBYSCORE', windows, '-inf', '(' .. now, 'LIMIT', 0, 2)) do
  redis.call('DEL', empty)
  redis.call('ZREM', windows, empty)
end

local first = math.max(0, count - limit)
local blocking = redis.call('ZRANGE', key, first, first, 'WITHSCORES')
return {allowed and 1 or 0, count, tonumber(blocking[2] or 0), now}
