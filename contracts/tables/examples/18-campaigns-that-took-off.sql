-- Which campaigns took off in a day?
--
-- A day with at least 10 new pledges, and at least three times as many as on the mean of up to seven days before. The first
-- day of a campaign in the history has nothing to compare with, so it is not found.
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
        avg(new_pledge_count) OVER (PARTITION BY campaign_id ORDER BY day ROWS BETWEEN 7 PRECEDING AND 1 PRECEDING) AS usual
    FROM crowdfunding.campaign_funding_days
) AS d
INNER JOIN crowdfunding.campaigns AS c ON c.campaign_id = d.campaign_id
WHERE d.new_pledge_count >= 10 AND d.new_pledge_count >= 3 * d.usual
ORDER BY pledges DESC, day DESC, title
LIMIT 20
