-- Which currencies do campaigns use, and how much is that in the platform's currency?
--
-- rate is what the platform's own amounts come to: units of its currency for one unit of the campaign's.
SELECT
    currency,
    count() AS campaigns,
    round(sum(pledged), 2) AS pledged_in_currency,
    round(sum(pledged_platform), 2) AS raised,
    round(sum(pledged_platform) / nullIf(sum(pledged), 0), 8) AS rate
FROM crowdfunding.campaigns
GROUP BY currency
ORDER BY raised DESC, currency
