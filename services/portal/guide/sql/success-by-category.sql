-- How many of the campaigns that have ended reached their goal, in the 15 categories with the most of them. Best first.

SELECT category, ended, funded
FROM
(
    SELECT category, countIf(status != 'LIVE') AS ended, countIf(status = 'FUNDED') AS funded
    FROM ${views}.campaigns
    GROUP BY category
    HAVING ended > 0
    ORDER BY ended DESC, category
    LIMIT 15
)
ORDER BY funded / ended DESC, category
SETTINGS max_threads = 2
