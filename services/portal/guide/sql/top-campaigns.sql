-- The ten campaigns that raised most.

SELECT title, url, category, status, pledged_platform AS raised, backer_count AS backers
FROM ${views}.campaigns
ORDER BY pledged_platform DESC, campaign_id
LIMIT 10
SETTINGS max_threads = 2
