-- How many days does it take to reach the goal?
--
-- From the day of the launch to the first day at whose end the campaign had its goal; 0 is the day of the launch. percent
-- is rounded to two decimals, so 99.995 counts as reached. Only campaigns whose days from the launch to that one are in the history: of
-- the others it is not known (complete_from).
SELECT
    c.category AS category,
    count() AS campaigns,
    quantileExactInclusive(0.5)(r.days) AS median_days,
    countIf(r.days = 0) AS on_the_first_day
FROM
(
    SELECT campaign_id, min(day - launch_day) AS days
    FROM crowdfunding.campaign_days
    WHERE percent >= 100 AND complete_from <= launch_day
    GROUP BY campaign_id
) AS r
INNER JOIN crowdfunding.campaigns AS c ON c.campaign_id = r.campaign_id
GROUP BY category
ORDER BY median_days, category
