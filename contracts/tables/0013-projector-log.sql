-- What projectors noted about their runs (private). A new run learns from it what earlier runs knew. One row per start,
-- and few rows per hour. Rows that name keys stay for a month.

CREATE TABLE IF NOT EXISTS ${model}.projector_log
(
    projector String COMMENT 'One run of one projector process',
    kind      LowCardinality(String) COMMENT 'started: its settings; misplaced: records that are not in the partition of their key',
    detail    String COMMENT 'JSON',
    noted_at  DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY (kind, projector)
TTL toDateTime(noted_at) + INTERVAL 30 DAY DELETE WHERE kind = 'misplaced',
    toDateTime(noted_at) + INTERVAL 400 DAY DELETE
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
