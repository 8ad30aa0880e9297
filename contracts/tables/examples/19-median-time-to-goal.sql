-- How many days does it take to reach the goal?
--
-- From the day of the launch to the first day at whose end the campaign had its goal; 0 is the day of the launch. Only
-- campaigns whose whole life is in the history: of the others it is not known when they were pledged to (complete_from).
SELECT
    c.category AS category,
    count() AS campaigns,
    quantileExactInclusive(0.5)(dateDiff('day', toDate(assumeNotNull(c.launch_date)), r.day)) AS median_days,
    countIf(r.day = toDate(assumeNotNull(c.launch_date))) AS on_the_first_day
FROM
(
    SELECT campaign_id, min(day) AS day, any(complete_from) AS complete_from
    FROM crowdfunding.campaign_days
    WHERE percent >= 100
    GROUP BY campaign_id
) AS r
INNER JOIN crowdfunding.campaigns AS c ON c.campaign_id = r.campaign_id
WHERE r.complete_from <= toDate(c.launch_date)
GROUP BY category
ORDER BY median_days, category
