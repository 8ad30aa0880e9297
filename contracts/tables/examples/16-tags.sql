-- Which tags do well?
--
-- A campaign counts once for each of its tags. Tags with fewer than five campaigns say little, so they are left out.
SELECT
    tag,
    count() AS campaigns,
    round(sum(pledged_platform), 2) AS raised,
    round(100 * countIf(status = 'FUNDED') / nullIf(countIf(status != 'LIVE'), 0), 1) AS success_percent
FROM crowdfunding.campaigns
ARRAY JOIN arrayDistinct(tags) AS tag
GROUP BY tag
HAVING campaigns >= 5
ORDER BY raised DESC, tag
LIMIT 20
