-- How many campaigns had half of their goal after their first week?
--
-- The week is the day of the launch and the six days after it. not_known are the campaigns of whose first week the history does not
-- know every day (complete_from): they are not in the percentage.
SELECT
    countIf(is_known) AS campaigns,
    countIf(is_known AND percent_then >= 50) AS had_half,
    round(100 * had_half / nullIf(campaigns, 0), 2) AS percent,
    countIf(NOT is_known) AS not_known
FROM
(
    SELECT
        any(d.campaign_id != '' AND d.complete_from <= toDate(c.launch_date)) AS is_known,
        argMax(d.percent, d.day) AS percent_then
    FROM crowdfunding.campaign_days AS d
    RIGHT JOIN crowdfunding.campaigns AS c ON c.campaign_id = d.campaign_id AND d.day < toDate(c.launch_date) + 7
    WHERE c.launch_date < now('UTC') - INTERVAL 7 DAY
    GROUP BY c.campaign_id
)
