-- Which categories succeed, and by how much do they pass or miss their goals?
--
-- The success rate counts campaigns that have ended: FUNDED of FUNDED, FAILED and CANCELLED. A median is not moved by one
-- campaign that raised a hundred times its goal, as a mean would be.
SELECT
    category,
    count() AS ended,
    countIf(status = 'FUNDED') AS funded,
    round(100 * funded / ended, 1) AS success_percent,
    round(quantileExactInclusiveOrNullIf(0.5)(percent, status = 'FUNDED'), 1) AS median_percent_of_funded,
    round(quantileExactInclusiveOrNullIf(0.5)(percent, status = 'FAILED'), 1) AS median_percent_of_failed
FROM crowdfunding.campaigns
WHERE status IN ('FUNDED', 'FAILED', 'CANCELLED')
GROUP BY category
ORDER BY success_percent DESC, category
