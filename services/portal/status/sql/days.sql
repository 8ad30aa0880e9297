-- The measured minutes of the last 90 UTC days.

SELECT
    toString(toDate(minute)) AS day,
    countIf(state = 0) AS fresh,
    countIf(state = 1) AS behind,
    countIf(state = 2) AS away
FROM
(
    SELECT minute, min(state) AS state
    FROM ${base}.freshness
    WHERE minute > now64(3, 'UTC') - INTERVAL 90 DAY
    GROUP BY minute
)
GROUP BY day
ORDER BY day
SETTINGS max_execution_time = 10
