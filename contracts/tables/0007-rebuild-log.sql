-- The rebuilds (private): every step and every heartbeat. With it, other processes can watch a rebuild, a killed
-- rebuild can resume, and a second rebuild is refused while one is alive.

CREATE TABLE IF NOT EXISTS ${model}.rebuild_log
(
    rebuild_id  String,
    run         String COMMENT 'The process that worked on it, or asked for its end',
    phase       LowCardinality(String),
    detail      String COMMENT 'JSON: what it needs to go on, and how far it is',
    written_at  DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY written_at
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
