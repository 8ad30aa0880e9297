-- What the campaigns of each of the last 24 months raised, by the month of their launch. It is shown as long as the history
-- is too short to show days.

SELECT
    toString(toStartOfMonth(assumeNotNull(launch_date))) AS day,
    sum(pledged_platform) AS raised,
    sum(pledge_count) AS pledges
FROM ${views}.campaigns
WHERE launch_date IS NOT NULL AND launch_date >= toStartOfMonth(now('UTC')) - INTERVAL 23 MONTH AND launch_date <= now('UTC')
GROUP BY day
ORDER BY day
SETTINGS max_execution_time = 10, max_threads = 2
