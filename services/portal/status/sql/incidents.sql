-- Two or more measured minutes in a row in which the data was not up to date, the latest first.

SELECT
    toUnixTimestamp64Milli(min(minute)) AS began_at,
    toUnixTimestamp64Milli(max(minute)) AS last_at,
    countIf(state = 1) AS behind,
    countIf(state = 2) AS away
FROM
(
    -- Minutes between two good ones have seen the same number of good ones.
    SELECT minute, state, sum(state = 0) OVER (ORDER BY minute) AS good_before
    FROM
    (
        SELECT minute, min(state) AS state
        FROM ${base}.freshness
        WHERE minute > now64(3, 'UTC') - INTERVAL 90 DAY
        GROUP BY minute
    )
)
WHERE state > 0
GROUP BY good_before
HAVING count() >= 2
ORDER BY began_at DESC
LIMIT 50
