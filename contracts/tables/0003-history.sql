-- The history (private): each public campaign as it was shown at the end of each UTC day on which it changed.
--
-- The fold keeps only the latest row of a campaign. So a leader of the fold closes a day before it writes the first row with a
-- stamp of the next one: it copies the rows that changed since the last close (services/projector/fold/day-close.ts). The
-- history is no function of the events: a rebuild neither makes it anew nor swaps it, and it has to be backed up.

-- Sorted by day first: a new day lies behind all others, so reading with FINAL has next to nothing to compare.
CREATE TABLE IF NOT EXISTS ${base}.campaign_days
(
    campaign_id             String,
    day                     Date COMMENT 'Of updated_at, UTC',
    is_deleted              UInt8 COMMENT '1: no longer public at the end of this day. Then the columns up to follower_count are empty',
    status                  LowCardinality(String),
    category                LowCardinality(String),
    currency                LowCardinality(String),
    pledged_amount          Decimal(38, 4),
    pledged_platform_amount Decimal(38, 4),
    percent_funded          Decimal(38, 2),
    backer_count            UInt64,
    pledge_count            UInt64,
    follower_count          UInt64,
    updated_at              DateTime64(3, 'UTC') COMMENT 'The stamp of the row',
    was_public              Bool COMMENT 'Whether it was public at the end of the day of its row before this one',
    is_opening              Bool COMMENT 'Its amount was not pledged on this day: the history begins later than the campaign, or it was hidden',
    previous_category       LowCardinality(String) COMMENT 'Of the row before, like the next three; empty or 0 if it was not public',
    previous_platform_amount Decimal(38, 4),
    previous_backer_count   UInt64,
    previous_pledge_count   UInt64
)
ENGINE = ReplacingMergeTree(updated_at)
ORDER BY (day, campaign_id)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, min_age_to_force_merge_seconds = 3600;

-- The last closed row of each campaign: with what the next one is compared.
CREATE TABLE IF NOT EXISTS ${base}.history_latest AS ${base}.campaign_days
ENGINE = ReplacingMergeTree(day)
ORDER BY campaign_id
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1, min_age_to_force_merge_seconds = 3600;

-- Up to when days are closed. A row per shard of a cluster stays; the others are merged away.
CREATE TABLE IF NOT EXISTS ${base}.history_closed
(
    shard       String COMMENT 'The shard of a cluster, empty on a single server',
    closed_from DateTime64(3, 'UTC') COMMENT 'Where this close began: the end of the one before',
    closed      DateTime64(3, 'UTC') COMMENT 'The first moment of the day that is not closed'
)
ENGINE = ReplacingMergeTree(closed)
ORDER BY shard
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
