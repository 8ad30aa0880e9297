-- Rejects (private): records that could not be projected, with their reason and their original bytes. This is the dead-letter
-- queue. No generation of the tables owns it, so a rebuild leaves it alone.
--
-- A record is one row, however often it is read: the engine keeps the first rejection. `appended_at` belongs to the place,
-- because a topic that was made anew has the same offsets again. Read it with FINAL.
--
-- A retry settles a reject: its event is in the ledger now. The row is written once more, with this time and with the highest
-- `earliness`, so it is the one that stays, also if the record is read and rejected again.
CREATE TABLE IF NOT EXISTS ${base}.rejects
(
    log            LowCardinality(String) COMMENT 'Id of the Kafka cluster; empty: the journal',
    topic          LowCardinality(String),
    partition      UInt32,
    offset         UInt64,
    appended_at    Int64 COMMENT 'ms since the epoch; a producer may set any number',
    rejected_at    DateTime64(3, 'UTC'),
    kept_until     DateTime64(3, 'UTC'),
    reason         String,
    reason_kind    String COMMENT 'The reason without its values',
    key            Nullable(String) COMMENT 'The original bytes; the first ones if key_bytes is larger',
    key_bytes      UInt64 COMMENT 'Of the record',
    value          Nullable(String) COMMENT 'The original bytes; the first ones if value_bytes is larger; null with a size: it could not be read',
    value_bytes    UInt64 COMMENT 'Of the record',
    header_names   Array(String) COMMENT 'One for each value; those of the record that fit',
    header_values  Array(String),
    header_count   UInt32 COMMENT 'Of the record',
    header_bytes   UInt64 COMMENT 'Of the record: names and values',
    earliness      UInt64 DEFAULT 18446744073709551615 - toUnixTimestamp64Milli(rejected_at) COMMENT 'The highest one stays',
    settled_at     DateTime64(3, 'UTC') DEFAULT toDateTime64(0, 3, 'UTC') COMMENT '1970: it is open'
)
ENGINE = ReplacingMergeTree(earliness)
ORDER BY (log, topic, partition, offset, appended_at)
TTL toDateTime(kept_until) DELETE
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_age_to_force_merge_seconds = 3600;
