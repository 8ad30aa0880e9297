-- What projectors noted about their runs (private). A new run learns from it what earlier runs knew. One row per start,
-- and few rows per hour. Rows that name keys stay for a month.

CREATE TABLE IF NOT EXISTS ${base}.projector_log
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

-- The settings that the tables began with. A process with other settings is refused, because it would corrupt the
-- tables: with another backer key every backer would count again, and with another currency the same amounts would
-- mean other money. Secrets are stored as fingerprints.

CREATE TABLE IF NOT EXISTS ${base}.identity
(
    setting     String COMMENT 'Name of the setting',
    fingerprint String COMMENT 'Of its value; the value itself where it is no secret',
    held_at     DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY setting
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- The generations of the tables (private; services/generations/attempts.ts says what each kind of row means). It is one table, so that the
-- row that names the current generation has all its conditions in a single scan of it.

CREATE TABLE IF NOT EXISTS ${base}.generation_log
(
    kind       LowCardinality(String) COMMENT 'registered, current, dropped; attempt, beat, given up',
    generation UInt32 COMMENT 'Which one it is about; 0: none',
    attempt    UInt64 COMMENT 'Who did it. The highest attempt that is not given up works',
    run        String COMMENT 'The process',
    detail     String COMMENT 'JSON: how far a rebuild is',
    written_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY written_at
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
