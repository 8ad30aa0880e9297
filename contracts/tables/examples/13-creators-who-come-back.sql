-- Do creators do better with their second campaign?
--
-- A creator is known by the public profile. The first campaign is the one that was launched first.
SELECT
    multiIf(number = 1, 'first', number = 2, 'second', 'third or later') AS campaign_of_creator,
    count() AS campaigns,
    countIf(status = 'FUNDED') AS funded,
    round(100 * funded / nullIf(countIf(status != 'LIVE'), 0), 1) AS success_percent,
    round(avg(pledged_platform), 2) AS mean_raised
FROM
(
    SELECT
        status,
        pledged_platform,
        row_number() OVER (PARTITION BY creator_profile_url ORDER BY launch_date, campaign_id) AS number
    FROM crowdfunding.campaigns
    WHERE launch_date IS NOT NULL
)
GROUP BY campaign_of_creator
ORDER BY min(number)
