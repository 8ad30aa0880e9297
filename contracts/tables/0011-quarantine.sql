-- The quarantine (private): campaigns that the common fold could not fold within its bounds of time and memory. It leaves them out,
-- and each is tried alone.

CREATE TABLE IF NOT EXISTS ${model}.quarantine
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
