-- How much did the platform raise on each of the last 30 days, and is that more than usual?
--
-- The mean is that of the day and the six days before. Today is not over: its row still grows. Days are UTC days. What a
-- campaign already had when the history began is not counted as the money of a day.
SELECT
    day,
    new_pledge_count AS pledges,
    round(new_pledged_platform, 2) AS raised,
    round(avg(new_pledged_platform) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW), 2) AS mean_of_7_days,
    round(pledged_platform, 2) AS raised_in_total
FROM crowdfunding.funding_days
QUALIFY day > toDate(now('UTC')) - 30
ORDER BY day
