-- The ledger (private): the latest state of every entity, for any order and number of its events.
--
-- ReplacingMergeTree(version) keeps the row with the highest version. A tombstone is written with the version 2^64-1,
-- which no event reaches. Read with FINAL. Any number of projectors insert, in any order, as often as they like. A
-- campaign that is not public has only its id and version, no content. A pledge has a keyed hash instead of the
-- backer's id.
--
-- Granules are small because a fold reads scattered campaigns. So are the blocks of the pledges' narrow columns: a block of the
-- usual size would hold many granules. Inserts are fsynced because offsets are committed after them. New parts hold back
-- ClickHouse's own merges with a large part, also those that min_age_to_force_merge_seconds asks for. So the leading projector and
-- the command purge remove superseded rows from disk (services/tables/superseded.ts).

CREATE TABLE IF NOT EXISTS ${ledger}.campaign_ledger
(
${ledger_columns}
)
ENGINE = ReplacingMergeTree(version)
ORDER BY campaign_id
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1;

-- A pledge that does not count keeps only its ids and version.
CREATE TABLE IF NOT EXISTS ${ledger}.pledge_ledger
(
    campaign_id           String,
    pledge_id             String,
    version               UInt64,
    counts                Bool,
    backer_hash           UInt64 COMMENT 'Keyed hash of the backer id; the row backer_hash of the table identity says which',
    amount_minor          Int64,
    platform_amount_minor Int64,
    reward_id             String COMMENT 'Empty: no reward',
    pledged_on            Date COMMENT 'UTC: of changed_at. The days before the history are derived from it'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (campaign_id, pledge_id)
SETTINGS index_granularity = 512, min_compress_block_size = 4096, fsync_after_insert = 1, fsync_part_directory = 1;
