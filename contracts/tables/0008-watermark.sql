-- The watermark: everything stamped before it is visible, and every later stamp (updated_at) is at or after it (private).
--
-- The leader of the fold writes rows here between its statements, also while there is nothing to fold, and never during one. So a
-- list that was read after this moment was written has every change up to it, whatever the server's clock does. A row per shard of a
-- cluster stays; the others are merged away.

CREATE TABLE IF NOT EXISTS ${model}.watermarks
(
    shard   String COMMENT 'The shard of a cluster, empty on a single server',
    reached DateTime64(3, 'UTC') COMMENT 'No later stamp of this shard is earlier'
)
ENGINE = ReplacingMergeTree(reached)
ORDER BY shard
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- The lowest of all shards. No row, until a fold worker has written to the table above.
CREATE OR REPLACE VIEW ${model}.watermark
(
    reached DateTime64(3, 'UTC') COMMENT 'Every change with an earlier stamp is visible'
)
SQL SECURITY DEFINER
AS SELECT min(reached_by_shard) AS reached
FROM (SELECT max(reached) AS reached_by_shard FROM ${model}.watermarks GROUP BY shard)
HAVING count() > 0;
