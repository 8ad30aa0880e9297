-- Announces again what was copied from the previous ledgers into the live ones, also what a killed run has copied. A copy comes after
-- its announcement, which names the campaigns, and the live fold does not wait for it.
INSERT INTO ${model}.batch_log (projector, sequence, positions, events, rejects, keys, campaign_ids, oldest_at)
SELECT projector, 2, [], 0, 0, any(keys), any(campaign_ids), now64(3, 'UTC')
FROM ${model}.batch_log
WHERE position(projector, {suffix:String}) > 0
GROUP BY projector
HAVING max(sequence) = 1
SETTINGS async_insert = 0
