-- What does a reward cost that backers choose, in each currency?
--
-- Each tier weighs as much as it has claims. Half of the claims are for a tier of the median price or a cheaper one.
SELECT
    currency,
    sum(quantity_claimed) AS claims,
    quantileExactWeighted(0.5)(price, quantity_claimed) AS median_price,
    round(sum(price * quantity_claimed) / claims, 2) AS mean_price
FROM crowdfunding.rewards
WHERE quantity_claimed > 0
GROUP BY currency
ORDER BY claims DESC, currency
