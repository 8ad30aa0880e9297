-- Do campaigns with a small goal succeed more often?
--
-- Goals are in the currency of each campaign, so this compares only campaigns in the platform's currency.
SELECT
    multiIf(
        goal < 1000, 'below 1,000',
        goal < 5000, '1,000 to 4,999',
        goal < 10000, '5,000 to 9,999',
        goal < 50000, '10,000 to 49,999',
        '50,000 and more') AS goal_size,
    count() AS ended,
    countIf(status = 'FUNDED') AS funded,
    round(100 * funded / ended, 1) AS success_percent
FROM crowdfunding.campaigns
WHERE status IN ('FUNDED', 'FAILED', 'CANCELLED')
    AND currency = (SELECT platform_currency FROM crowdfunding.about)
GROUP BY goal_size
ORDER BY min(goal)
