-- Why projectors stopped (private): a row for each one that ended with an error. Commands and other processes tell it from here.
-- A row without a reason says that this run began to lead the fold.

CREATE TABLE IF NOT EXISTS ${base}.projector_stops
(
    projector  String COMMENT 'One run of one projector process',
    reason     String COMMENT 'The error, without texts of events',
    stopped_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY stopped_at
TTL toDateTime(stopped_at) + INTERVAL 30 DAY DELETE
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
