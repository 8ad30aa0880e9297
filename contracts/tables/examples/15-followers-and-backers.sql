-- How many followers become backers?
--
-- Backers for 100 followers, by category and for campaigns that have ended. Not every backer was a follower, so it may be
-- above 100.
SELECT
    category,
    count() AS campaigns,
    sum(follower_count) AS followers,
    sum(backer_count) AS backers,
    round(100 * backers / nullIf(followers, 0), 1) AS backers_per_100_followers
FROM crowdfunding.campaigns
WHERE status != 'LIVE'
GROUP BY category
ORDER BY backers_per_100_followers DESC, category
