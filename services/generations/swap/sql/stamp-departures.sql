-- Runs just before the swap. A campaign that is public only in the live tables gets a row that says when it went, for
-- pollers that follow departures by their stamps.
INSERT INTO ${model}.campaigns (campaign_id, content_hash, updated_at, fold_id, is_deleted)
SELECT campaign_id, toFixedString('', 16), ${stamp}, {changed_id:UInt64}, 1
FROM ${live}.campaigns FINAL
WHERE campaign_id NOT IN (SELECT campaign_id FROM ${model}.campaigns FINAL)
SETTINGS async_insert = 0
