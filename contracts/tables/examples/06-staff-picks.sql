-- Do campaigns that the staff picked raise more?
--
-- That they raise more does not say that the pick is the reason: staff may pick what does well.
SELECT
    is_staff_pick,
    count() AS campaigns,
    round(100 * countIf(status = 'FUNDED') / nullIf(countIf(status != 'LIVE'), 0), 1) AS success_percent,
    round(avg(pledged_platform), 2) AS mean_raised,
    round(quantileExactInclusive(0.5)(pledged_platform), 2) AS median_raised,
    round(avg(backer_count), 1) AS mean_backers
FROM crowdfunding.campaigns
GROUP BY is_staff_pick
ORDER BY is_staff_pick DESC
