-- The moment that no later stamp lies before (private), and the watermark that follows from it.
--
-- The leader of the fold writes rows here between its statements, also while there is nothing to fold. Every later stamp
-- (updated_at) is at least the highest moment here, even if the server's clock is set back. Every earlier stamp is visible,
-- or its row gets a new stamp. So a list that was read after this moment was written has every change up to it. This does
-- not depend on any clock or on any process's commit horizon.
--
-- A row per shard of a cluster stays; the others are merged away.

CREATE TABLE IF NOT EXISTS ${model}.stamp_floor
(
    shard   String COMMENT 'The shard of a cluster, empty on a single server',
    reached DateTime64(3, 'UTC') COMMENT 'No later stamp of this shard is earlier'
)
ENGINE = ReplacingMergeTree(reached)
ORDER BY shard
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- No row, until a fold worker has written to the table above.
CREATE OR REPLACE VIEW ${model}.watermark
(
    reached DateTime64(3, 'UTC') COMMENT 'Every change with an earlier stamp is visible, or gets a later stamp'
)
SQL SECURITY DEFINER
AS SELECT min(reached_by_shard) AS reached
FROM (SELECT max(reached) AS reached_by_shard FROM ${model}.stamp_floor GROUP BY shard)
HAVING count() > 0;
