-- The batches of the projectors, and how far they are folded (private).
--
-- A projector appends one row to the batch log after the batch's ledger rows are inserted. Its sequence numbers have
-- no gaps. The fold worker continues after the last number that the fold log has for each projector. A batch that no
-- fold worker sees within a month is dropped and is never folded. After a year without any fold, the next fold worker
-- gives every row a new stamp.

CREATE TABLE IF NOT EXISTS ${model}.batch_log
(
    projector      LowCardinality(String) COMMENT 'One run of one projector process',
    sequence       UInt64 COMMENT 'From 1, without gaps',
    positions      Array(Tuple(topic String, partition UInt32, next UInt64)) COMMENT 'Source offsets to read next',
    events         UInt64,
    rejects        UInt64,
    keys           UInt64 COMMENT 'How many of the events are api-key events',
    campaign_ids   Array(String) COMMENT 'Campaigns whose read row may have to change',
    oldest_at      DateTime64(3, 'UTC') COMMENT 'When the oldest event of the batch entered the log',
    appended_at    DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY (projector, sequence)
TTL toDateTime(appended_at) + INTERVAL 30 DAY
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- One row per finished fold. A fold without a row here may have written rows: they get a new stamp.
CREATE TABLE IF NOT EXISTS ${model}.fold_log
(
    fold_id      UInt64,
    holder       String,
    folded       Array(Tuple(projector String, sequence UInt64)) COMMENT 'Batches up to these are in the read tables',
    campaigns    UInt64 COMMENT 'Campaigns that were looked at',
    elapsed_ms   UInt64,
    finished_at  DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY fold_id
TTL toDateTime(finished_at) + INTERVAL 365 DAY
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- The leader of the fold: the holder of the highest epoch. The epoch is a fencing token: every fold statement has it
-- as a condition.
CREATE TABLE IF NOT EXISTS ${model}.fold_epochs
(
    epoch    UInt64,
    holder   String,
    taken_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY epoch
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
