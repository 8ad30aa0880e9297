-- Which categories grow: the last seven whole days, compared with the seven days before them?
--
-- growth_percent is null if nothing came in the earlier days, or if more was refunded than came.
WITH toDate(now('UTC')) AS today
SELECT
    category,
    round(sumIf(new_pledged_platform, day >= today - 7), 2) AS last_7_days,
    round(sumIf(new_pledged_platform, day < today - 7), 2) AS days_before,
    if(days_before > 0, round(100 * (last_7_days / days_before - 1), 1), NULL) AS growth_percent
FROM crowdfunding.category_funding_days
WHERE day >= today - 14 AND day < today
GROUP BY category
ORDER BY last_7_days DESC, category
