-- How much does a backer give in each category?
--
-- A backer of two campaigns counts in each of them here, because the views say nothing of a single backer.
-- platform_totals.total_backers counts each person once.
SELECT
    category,
    sum(pledge_count) AS pledges,
    round(sum(pledged_platform) / nullIf(pledges, 0), 2) AS average_pledge,
    round(sum(pledged_platform) / nullIf(sum(backer_count), 0), 2) AS average_of_a_backer
FROM crowdfunding.campaigns
GROUP BY category
ORDER BY average_pledge DESC, category
