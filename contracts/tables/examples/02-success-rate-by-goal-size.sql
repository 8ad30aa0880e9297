-- Do campaigns with a small goal succeed more often?
--
-- Goals are compared in the platform's currency, at the rate of the campaign's pledges. A goal in a currency in which nobody has
-- pledged yet has no such rate, and is left out.
SELECT
    multiIf(
        goal_platform < 1000, 'below 1,000',
        goal_platform < 5000, '1,000 to 4,999',
        goal_platform < 10000, '5,000 to 9,999',
        goal_platform < 50000, '10,000 to 49,999',
        '50,000 and more') AS goal_size,
    count() AS ended,
    countIf(status = 'FUNDED') AS funded,
    round(100 * funded / ended, 1) AS success_percent
FROM crowdfunding.campaigns
WHERE status IN ('FUNDED', 'FAILED', 'CANCELLED') AND goal_platform IS NOT NULL
GROUP BY goal_size
ORDER BY min(goal_platform)
