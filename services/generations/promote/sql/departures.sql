-- Runs while a promotion holds the fold. A campaign that only the current generation shows gets a row that says when it went, for
-- pollers that follow departures by their stamps.
INSERT INTO ${read}.campaigns (campaign_id, content_hash, updated_at, fold_id, is_deleted)
SELECT campaign_id, toFixedString('', 16), greatest(${stamp}, updated_at + toIntervalMillisecond(1)), {fold_id:UInt64}, 1
FROM ${live}.campaigns FINAL
WHERE ${piece} AND campaign_id NOT IN (SELECT campaign_id FROM ${read}.campaigns FINAL WHERE ${piece}) AND ${fence}
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0
