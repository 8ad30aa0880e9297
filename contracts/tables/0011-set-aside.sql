-- Campaigns that are set aside (private): the common fold could not fold them within its bounds of time and memory, so it
-- leaves them out, and each is folded alone.

CREATE TABLE IF NOT EXISTS ${model}.set_aside
(
    campaign_id  String,
    fold_id      UInt64 COMMENT 'The statement that wrote this row. The highest one counts',
    is_set_aside Bool COMMENT 'False: it takes part in the common folds again',
    is_behind    Bool COMMENT 'Whether changes may be missing from the read table',
    failures     UInt32 COMMENT 'How often it could not be folded alone, since it last could',
    reason       String COMMENT 'Why the last fold failed: the name of ClickHouse''s error, or LATE',
    since        DateTime64(3, 'UTC') COMMENT 'When it was set aside'
)
ENGINE = ReplacingMergeTree(fold_id)
ORDER BY campaign_id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- The row of a campaign that is folded alone, before it is shown. One partition for each attempt, because the fold worker
-- drops it afterwards. If the fold worker dies, the row is dropped after a day: a step of the clock by some hours must not
-- remove a row that is not shown yet.
CREATE TABLE IF NOT EXISTS ${model}.staged_campaigns AS ${model}.campaigns
ENGINE = MergeTree
PARTITION BY fold_id
ORDER BY campaign_id
TTL toDateTime(updated_at) + INTERVAL 1 DAY
SETTINGS merge_with_ttl_timeout = 600;
