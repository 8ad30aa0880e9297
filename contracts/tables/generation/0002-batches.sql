-- What the projectors and the fold note about their work (private): batches, positions, the leader, the watermark.
--
-- A projector appends one row to the batch log after the batch's ledger rows are inserted. Its sequence numbers have
-- no gaps. The fold worker continues after the last number that is folded for each projector. A batch is dropped after a month, folded
-- or not. If the watermark is nearly as old, the next leader folds everything once.

CREATE TABLE IF NOT EXISTS ${ledger}.batch_log
(
    projector      LowCardinality(String) COMMENT 'One run of one projector process',
    sequence       UInt64 COMMENT 'From 1, without gaps',
    log            String COMMENT 'As in the table of positions',
    positions      Array(Tuple(topic String, partition UInt32, next UInt64)) COMMENT 'Source offsets to read next',
    events         UInt64,
    rejects        UInt64,
    keys           UInt64 COMMENT 'How many of the events are api-key events',
    campaign_ids   Array(String) COMMENT 'Campaigns whose read row may have to change',
    oldest_at      DateTime64(3, 'UTC') COMMENT 'When the oldest event of the batch entered the log',
    restamp_before DateTime64(3, 'UTC') COMMENT 'After a restore: its campaigns get a new stamp if theirs is earlier. Else 1970',
    appended_at    DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY (projector, sequence)
TTL toDateTime(appended_at) + INTERVAL 30 DAY
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- How far each partition of the event log is in the tables. A projector reads on from here, whatever its consumer group says. In the
-- highest era the highest position counts; the positions of other rows are merged away. An era begins when the positions have to go
-- back: the tables were restored from a backup, or the log was replaced.
CREATE TABLE IF NOT EXISTS ${ledger}.positions
(
    log            String COMMENT 'The Kafka cluster and the prefix of its topics; empty for the embedded journal',
    topic          String,
    partition      UInt32,
    era            UInt32,
    next           UInt64 COMMENT 'The offset to read next',
    last_at        Int64 COMMENT 'When the record before it entered the log, Unix ms; 0: unknown. Producers may write any time',
    read_until     DateTime64(3, 'UTC') COMMENT 'Everything that the partition had at this time is read',
    again_until    UInt64 COMMENT 'What is before this offset is read again after a restore',
    lost_watermark DateTime64(3, 'UTC') COMMENT 'The watermark that lists had shown before that restore',
    written_at     DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(next)
ORDER BY (log, topic, partition, era)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- How far the batches of each run of a projector are folded: one row a run stays. A fold writes them at its end. Rows of runs whose batches
-- are dropped go, too.
CREATE TABLE IF NOT EXISTS ${ledger}.fold_progress
(
    projector  String COMMENT 'As in the batch log',
    sequence   UInt64 COMMENT 'Batches up to this one are in the read tables',
    fold_id    UInt64 COMMENT 'The statement that wrote this row. The highest one counts',
    elapsed_ms UInt64 COMMENT 'How long the fold took',
    written_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(fold_id)
ORDER BY projector
TTL toDateTime(written_at) + INTERVAL 60 DAY
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- The leader of the fold: the holder of the highest epoch. The epoch is a fencing token: every fold statement has it
-- as a condition.
CREATE TABLE IF NOT EXISTS ${ledger}.fold_epochs
(
    epoch    UInt64,
    holder   String,
    taken_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY epoch
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- The watermark: everything stamped before it is visible, and every later stamp (updated_at) is at or after it (private).
--
-- The leader of the fold writes rows here between its statements, also while there is nothing to fold, and never during one. So a
-- list that was read after this moment was written has every change up to it, whatever the server's clock does. A row per shard of a
-- cluster stays; the others are merged away.

CREATE TABLE IF NOT EXISTS ${read}.watermarks
(
    shard   String COMMENT 'The shard of a cluster, empty on a single server',
    reached DateTime64(3, 'UTC') COMMENT 'No later stamp of this shard is earlier'
)
ENGINE = ReplacingMergeTree(reached)
ORDER BY shard
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- The lowest of all shards. No row, until a fold worker has written to the table above.
CREATE OR REPLACE VIEW ${read}.watermark
(
    reached DateTime64(3, 'UTC') COMMENT 'Every change with an earlier stamp is visible'
)
SQL SECURITY DEFINER
AS SELECT min(reached_by_shard) AS reached
FROM (SELECT max(reached) AS reached_by_shard FROM ${read}.watermarks GROUP BY shard)
HAVING count() > 0;

-- The quarantine (private): campaigns that the common fold could not fold within its bounds of time and memory. It leaves them out,
-- and each is tried alone.

CREATE TABLE IF NOT EXISTS ${ledger}.quarantine
(
    campaign_id    String,
    fold_id        UInt64 COMMENT 'The statement that wrote this row. The highest one counts',
    is_quarantined Bool COMMENT 'False: it takes part in the common folds again',
    failures       UInt32 COMMENT 'How many tries in a row have failed. 0: it was folded alone',
    reason         String COMMENT 'Why it last could not be folded: the name of ClickHouse''s error',
    since          DateTime64(3, 'UTC') COMMENT 'When it came into quarantine'
)
ENGINE = ReplacingMergeTree(fold_id)
ORDER BY campaign_id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
