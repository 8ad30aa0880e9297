-- Which limited reward tiers sell out: the cheap ones, or the expensive ones?
--
-- Prices are in the currency of each campaign, so this compares only tiers in the platform's currency.
SELECT
    multiIf(price < 10, 'below 10', price < 25, '10 to 24', price < 50, '25 to 49', price < 100, '50 to 99', '100 and more') AS price_range,
    count() AS limited_tiers,
    countIf(quantity_remaining = 0) AS sold_out,
    round(100 * sold_out / limited_tiers, 1) AS sold_out_percent,
    sum(quantity_claimed) AS claimed
FROM crowdfunding.rewards
WHERE quantity_available IS NOT NULL
    AND currency = (SELECT platform_currency FROM crowdfunding.about)
GROUP BY price_range
ORDER BY min(price)
