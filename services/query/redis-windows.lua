-- One question to a bucket's sliding window, decided in one step and by Redis's own clock.
--
-- KEYS[1]  a sorted set: the hits that hold a place, by the millisecond at which they took it
-- ARGV     1 limit, 2 length of the window (ms), 3 deadline (Unix ms), 4 id of the hit, empty for a mere look;
--          then id and Unix ms of each hit that was admitted elsewhere and is to hold its place here too
-- Returns  1 or 0 (admitted, or would be), places in use, the millisecond of the hit whose leaving makes room, the time.
--          -1 first where the deadline has passed: whoever asked has stopped waiting, and nothing was changed.
local key = KEYS[1]
local limit, window, deadline, id = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if now > deadline then return {-1, 0, 0, now} end

-- Where the clock was set back, hits of the future would hold their places until it has caught up.
for _, future in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. now, '+inf')) do
  redis.call('ZADD', key, now, future)
end
redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. now - window)

local isTold = #ARGV > 4
if isTold then
  for at = 5, #ARGV, 2 do
    local time = math.min(tonumber(ARGV[at + 1]), now)
    if time >= now - window then redis.call('ZADD', key, 'NX', time, ARGV[at]) end
  end
  -- Of more than the limit only the newest matter: there is no room before the first of these has left.
  redis.call('ZREMRANGEBYRANK', key, 0, -limit - 1)
end

local count = redis.call('ZCARD', key)
local allowed = count < limit
if allowed and id ~= '' then
  redis.call('ZADD', key, now, id)
  count = count + 1
end
-- A second more than the hits count for, so that no place is lost to rounding.
if isTold or id ~= '' then redis.call('PEXPIRE', key, window + 1000) end

local first = math.max(0, count - limit)
local blocking = redis.call('ZRANGE', key, first, first, 'WITHSCORES')
return {allowed and 1 or 0, count, tonumber(blocking[2] or 0), now}
