-- Do shorter campaigns succeed more often?
--
-- Without cancelled campaigns: they end on the day on which they are cancelled.
SELECT
    multiIf(days <= 14, 'up to 14 days', days <= 21, '15 to 21', days <= 29, '22 to 29', days <= 30, '30', 'longer') AS duration,
    count() AS ended,
    countIf(status = 'FUNDED') AS funded,
    round(100 * funded / ended, 1) AS success_percent
FROM
(
    SELECT status, round(dateDiff('hour', launch_date, end_date) / 24) AS days
    FROM crowdfunding.campaigns
    WHERE status IN ('FUNDED', 'FAILED') AND launch_date IS NOT NULL AND end_date IS NOT NULL
)
GROUP BY duration
ORDER BY min(days)
