-- How much did each category raise, by the month in which its campaigns were launched?
--
-- All money of a campaign counts in the month of its launch. 17-funding-by-day.sql has the day on which money came. Amounts
-- are in the platform's currency.
SELECT
    category,
    makeDate32(toYear(launch_date), toMonth(launch_date), 1) AS month,
    count() AS campaigns,
    round(sum(pledged_platform), 2) AS raised
FROM crowdfunding.campaigns
WHERE launch_date IS NOT NULL
GROUP BY category, month
ORDER BY month, raised DESC, category
