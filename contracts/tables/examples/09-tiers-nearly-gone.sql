-- Which reward tiers of live campaigns are nearly gone?
--
-- The view rewards has one row per tier, so no ARRAY JOIN is needed. GLOBAL is for a cluster, and changes nothing on one server.
SELECT
    c.title AS campaign,
    r.title AS reward,
    r.price AS price,
    r.currency AS currency,
    r.quantity_remaining AS remaining,
    r.quantity_available AS available
FROM crowdfunding.rewards AS r
GLOBAL INNER JOIN (SELECT campaign_id, title FROM crowdfunding.campaigns WHERE status = 'LIVE') AS c ON c.campaign_id = r.campaign_id
WHERE r.quantity_remaining BETWEEN 1 AND 5
ORDER BY remaining, campaign, reward
LIMIT 20
