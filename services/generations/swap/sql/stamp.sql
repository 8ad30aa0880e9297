-- Runs just before the swap. A rebuilt row with the same content as the live row takes over its stamp. Every other row gets a
-- stamp of this moment, which no poller has passed. Only rows with another stamp are written. These are few, because the
-- fold of a rebuild already keeps the stamps that it finds.
--
-- If many rows changed, they are stamped after the swap (stamp-changed.sql).
INSERT INTO ${model}.campaigns (${columns}, creator_id, content_hash, updated_at, fold_id, is_deleted)
WITH moved AS
(
    SELECT
        rebuilt.campaign_id AS campaign_id,
        live.stands AND live.content_hash = rebuilt.content_hash AS is_same,
        live.updated_at AS live_stamp
    FROM (SELECT campaign_id, content_hash, updated_at FROM ${model}.campaigns FINAL) AS rebuilt
    LEFT JOIN (SELECT campaign_id, content_hash, updated_at, true AS stands FROM ${live}.campaigns FINAL) AS live
        ON live.campaign_id = rebuilt.campaign_id
    WHERE if(is_same, live.updated_at != rebuilt.updated_at, {also_changed:Bool})
)
SELECT
    ${row_columns}, row.creator_id, row.content_hash,
    if(moved.is_same, moved.live_stamp, ${stamp}),
    if(moved.is_same, {kept_id:UInt64}, {changed_id:UInt64}),
    0
FROM (SELECT * FROM ${model}.campaigns FINAL WHERE campaign_id IN (SELECT campaign_id FROM moved)) AS row
INNER JOIN moved ON moved.campaign_id = row.campaign_id
SETTINGS async_insert = 0, join_use_nulls = 0
