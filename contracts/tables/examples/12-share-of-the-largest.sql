-- Which share of all money do the largest campaigns raise?
--
-- The top 1 % are the campaigns that raised most, rounded up to a whole number of campaigns.
WITH ranked AS
(
    SELECT
        pledged_platform,
        row_number() OVER (ORDER BY pledged_platform DESC, campaign_id) AS place,
        count() OVER () AS campaigns,
        sum(pledged_platform) OVER () AS raised
    FROM crowdfunding.campaigns
)
SELECT
    top_percent,
    count() AS largest_campaigns,
    round(sum(pledged_platform), 2) AS raised_by_them,
    round(100 * sum(pledged_platform) / nullIf(any(raised), 0), 1) AS share_percent
FROM ranked
ARRAY JOIN [1, 5, 10, 25, 50] AS top_percent
WHERE place <= ceil(campaigns * top_percent / 100)
GROUP BY top_percent
ORDER BY top_percent
