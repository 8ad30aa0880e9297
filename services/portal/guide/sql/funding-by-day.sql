-- What was pledged on each of the last 30 UTC days. The last row is today's, which still changes.

SELECT
    toString(f.day) AS day,
    f.new_pledged_platform AS raised,
    f.new_pledge_count AS pledges
FROM ${views}.funding_days AS f
WHERE f.day > toDate(now('UTC')) - 30
ORDER BY f.day
SETTINGS max_threads = 2
