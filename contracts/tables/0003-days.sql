-- The history (private): each public campaign as it was shown at the end of each UTC day on which it changed.
--
-- The fold keeps only the latest row of a campaign. So the leader copies what changed before a row of the next day can
-- replace it (services/projector/fold/days.ts). What was before the first day of the history is derived from the pledges that count now. The
-- history is no function of the events: a rebuild neither makes it anew nor swaps it, and it has to be backed up.

-- A kept row has the stamp that it was shown with; a derived one that of the row from which it was derived.
--
-- Each row also has what the row before it had. So a question about all days does not have to sort the days of each campaign. The row before
-- is of a day that is over, and does not change. Derived days may change, on the first day. Then the first kept row is written again.
--
-- A fold looks up the rows of the campaigns that it changed. Each campaign costs it a granule and a block, so both are small.
CREATE TABLE IF NOT EXISTS ${base}.campaign_days
(
    campaign_id             String,
    day                     Date COMMENT 'UTC: of updated_at, if it is kept',
    source                  LowCardinality(String) COMMENT 'kept, or derived',
    is_deleted              UInt8 COMMENT '1: no longer public at the end of this day. Then the columns up to launched are empty',
    status                  LowCardinality(String),
    category                LowCardinality(String),
    currency                LowCardinality(String),
    pledged_amount          Decimal(38, 4),
    pledged_platform_amount Decimal(38, 4),
    percent_funded          Decimal(38, 2),
    backer_count            UInt64,
    pledge_count            UInt64,
    follower_count          UInt64 COMMENT '0 if it is derived',
    launched                Nullable(Date) COMMENT 'Day of the launch, UTC',
    previous_source         LowCardinality(String) COMMENT 'Of the row before, if it was public; otherwise this and the next four are empty',
    previous_category       LowCardinality(String),
    previous_platform_amount Decimal(38, 4),
    previous_backer_count   UInt64,
    previous_pledge_count   UInt64,
    is_opening              Bool COMMENT 'Its amount was not pledged on this day: it is older than the history, or it was hidden',
    complete_from           Date COMMENT 'From this day on, each pledge stands on a day of its own',
    updated_at              DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(updated_at)
ORDER BY (campaign_id, day)
SETTINGS index_granularity = 256, min_compress_block_size = 4096, fsync_after_insert = 1, fsync_part_directory = 1;

-- How far the history is written. A row per shard of a cluster stays; the others are merged away.
CREATE TABLE IF NOT EXISTS ${base}.history_marks
(
    shard   String COMMENT 'The shard of a cluster, empty on a single server',
    noted   DateTime64(3, 'UTC') COMMENT 'Every row with an earlier stamp is in the history',
    derived DateTime64(3, 'UTC') COMMENT 'The days before the first one are derived from rows with earlier stamps; 1970: not yet',
    begun   Date COMMENT 'The first day that was kept, UTC'
)
ENGINE = ReplacingMergeTree(noted)
ORDER BY shard
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
