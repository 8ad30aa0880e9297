-- The difference of each of the last 30 UTC days. The last row is today's, which still changes.

SELECT
    toString(day) AS day,
    new_pledged_platform AS raised,
    new_pledge_count AS pledges
FROM ${views}.funding_days
WHERE day > toDate(now('UTC')) - 30
ORDER BY day
SETTINGS max_execution_time = 10, max_threads = 2
