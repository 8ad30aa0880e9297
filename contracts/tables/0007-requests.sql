-- The latest requests of each API key (private). The query processes write them, and the portal shows each account its own, with the id to
-- search for. A row has no address, no secret, and no text that a client typed. Each process keeps at most as many requests of a key a minute
-- as the limit of a key admits.
-- An insert that is repeated changes nothing. Read it with FINAL.

CREATE TABLE IF NOT EXISTS ${base}.api_key_requests
(
    api_key    String,
    at         DateTime64(3, 'UTC') COMMENT 'When the answer was complete',
    request_id String COMMENT 'X-Request-Id of the answer',
    path       LowCardinality(String) COMMENT 'The pattern of the route, and those parameters whose values are numbers, times or from a fixed set',
    status     UInt16,
    ms         UInt32 COMMENT 'How long the answer took, in milliseconds'
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMMDD(at)
ORDER BY (api_key, at, request_id)
TTL toDateTime(at) + INTERVAL 3 DAY
SETTINGS ttl_only_drop_parts = 1;
