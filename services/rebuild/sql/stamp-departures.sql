-- Just before the exchange: what is public in the live generation alone leaves a row that says when it went, for those
-- who follow departures by their stamps.
INSERT INTO ${model}.campaigns (campaign_id, content_hash, updated_at, fold_id, is_deleted)
SELECT campaign_id, toFixedString('', 16), now64(3, 'UTC'), {changed_id:UInt64}, 1
FROM ${live}.campaigns FINAL
WHERE campaign_id NOT IN (SELECT campaign_id FROM ${model}.campaigns FINAL)
SETTINGS async_insert = 0
