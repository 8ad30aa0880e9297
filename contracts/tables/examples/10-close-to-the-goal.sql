-- Which live campaigns end within a week and are close to their goal?
--
-- missing is in the currency of the campaign.
SELECT
    title,
    percent,
    round(goal - pledged, 2) AS missing,
    currency,
    backer_count,
    end_date
FROM crowdfunding.campaigns
WHERE status = 'LIVE'
    AND percent >= 50 AND pledged_amount < goal_amount
    AND end_date > now('UTC') AND end_date <= now('UTC') + INTERVAL 7 DAY
ORDER BY percent DESC, title
LIMIT 20
