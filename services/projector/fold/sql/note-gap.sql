-- Runs before a fold of what is read again after a restore. Nobody can tell whether readers had seen what left while
-- the tables were away. So the removals are complete only from here on (contracts/tables/generation/0004-removals.sql). The stamp is above the watermark, because a
-- mirror that has the watermark has to look for itself, too.
INSERT INTO ${read}.campaigns (campaign_id, content_hash, updated_at, fold_id, is_deleted)
SELECT '', toFixedString('', 16), ${stamp} + toIntervalMillisecond(1), {fold_id:UInt64}, 1
WHERE ${fence} AND ${clock_fence}
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0
