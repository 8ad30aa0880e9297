-- The measured minutes of each of the last 90 UTC days, the unmeasured ones included.

SELECT
    toDate(minute) AS day,
    countIf(state = 0) AS fresh,
    countIf(state = 1) AS behind,
    countIf(state = 2) AS away
FROM
(
    SELECT minute, min(state) AS state
    FROM ${base}.freshness
    WHERE minute >= toDate(now64(3, 'UTC')) - 89
    GROUP BY minute
)
GROUP BY day
ORDER BY day WITH FILL FROM toDate(now64(3, 'UTC')) - 89 TO toDate(now64(3, 'UTC')) + 1
