-- How often each API key was used (private). The query processes write it, and the portal shows each account its own keys.
-- No event contains it, so a rebuild leaves it alone.
--
-- A query process counts in memory, and writes the sums so far of each key and minute every few seconds. A later row of the
-- same key, minute and process replaces the earlier one, so an insert that is repeated, or that arrives late, counts nothing
-- twice. Read it with FINAL, and sum over the processes.

CREATE TABLE IF NOT EXISTS ${base}.api_key_usage
(
    api_key      String,
    minute       DateTime64(3, 'UTC') COMMENT 'The start of the minute in which the requests were answered',
    process      LowCardinality(String) COMMENT 'One run of one query process',
    version      UInt64 COMMENT 'The highest one of a process counts',
    ok           UInt32 COMMENT 'Answers 200',
    not_modified UInt32 COMMENT 'Answers 304',
    unauthorized UInt32 COMMENT 'Answers 401 to requests with this key and a wrong secret',
    too_many     UInt32 COMMENT 'Answers 429',
    other        UInt32 COMMENT 'Every other status',
    deprecated   UInt32 COMMENT 'Of all of these: requests to a deprecated version'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(minute)
ORDER BY (api_key, minute, process)
TTL toDateTime(minute) + INTERVAL 90 DAY
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_age_to_force_merge_seconds = 3600;
