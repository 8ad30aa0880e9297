-- Which live campaigns took off in a day?
--
-- A day with at least 10 new pledges, and at least three times as many as on the mean of up to seven days before. Days without a
-- row had no pledges. The first day of a campaign has nothing to compare with, so it is not found. A day on which the history first
-- showed a campaign that was older, or showed it again (opening_platform), says nothing of what is usual, nor do the days before it.
-- GLOBAL is for a cluster, and changes nothing on one server.
SELECT
    c.title AS title,
    d.day AS day,
    d.new_pledge_count AS pledges,
    round(d.usual, 1) AS usual_pledges,
    round(d.new_pledged_platform, 2) AS raised
FROM
(
    SELECT
        campaign_id,
        day,
        new_pledge_count,
        new_pledged_platform,
        greatest(opened, min(day) OVER (PARTITION BY campaign_id, opened)) AS first_day,
        sum(new_pledge_count) OVER (PARTITION BY campaign_id, opened ORDER BY day RANGE BETWEEN 7 PRECEDING AND 1 PRECEDING)
            / nullIf(least(7, day - first_day), 0) AS usual
    FROM
    (
        SELECT
            campaign_id,
            day,
            new_pledge_count,
            new_pledged_platform,
            max(if(opening_platform = 0, toDate(0), day + 1)) OVER (PARTITION BY campaign_id ORDER BY day) AS opened
        FROM crowdfunding.campaign_days
        -- Asked here, so that what is usual is not computed for campaigns that have ended.
        WHERE campaign_id GLOBAL IN (SELECT campaign_id FROM crowdfunding.campaigns WHERE status = 'LIVE')
    )
) AS d
-- Only the live ones: a join keeps its right side in memory.
INNER JOIN (SELECT campaign_id, title FROM crowdfunding.campaigns WHERE status = 'LIVE') AS c ON c.campaign_id = d.campaign_id
WHERE d.new_pledge_count >= 10 AND d.new_pledge_count >= 3 * d.usual
ORDER BY pledges DESC, day DESC, title
LIMIT 20
