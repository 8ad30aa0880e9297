-- How many campaigns had half of their goal after their first week?
--
-- The week is the day of the launch and the six days after it. not_known are the campaigns of whose first week the history does not
-- know every day (complete_from): they are not in the percentage.
WITH toDate(now('UTC')) AS today
SELECT
    countIf(is_known) AS campaigns,
    countIf(is_known AND percent_then >= 50) AS had_half,
    round(100 * had_half / nullIf(campaigns, 0), 2) AS percent,
    (SELECT count() FROM crowdfunding.campaigns WHERE launch_date < today - 6) - campaigns AS not_known
FROM
(
    SELECT max(complete_from) <= any(launch_day) AS is_known, argMaxIf(percent, day, day < launch_day + 7) AS percent_then
    FROM crowdfunding.campaign_days
    WHERE launch_day + 7 <= today
    GROUP BY campaign_id
    HAVING min(day) < any(launch_day) + 7
)
