-- Which reward tiers of live campaigns are nearly gone?
--
-- The view rewards has one row per tier, so no ARRAY JOIN is needed.
SELECT
    c.title AS campaign,
    r.title AS reward,
    r.price AS price,
    r.currency AS currency,
    r.quantity_remaining AS remaining,
    r.quantity_available AS available
FROM crowdfunding.rewards AS r
INNER JOIN crowdfunding.campaigns AS c ON c.campaign_id = r.campaign_id
WHERE c.status = 'LIVE' AND r.quantity_remaining BETWEEN 1 AND 5
ORDER BY remaining, campaign, reward
LIMIT 20
