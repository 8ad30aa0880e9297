-- How fresh the data was, minute by minute (private): what the public page of the service's status shows. Each portal writes a row a minute.
-- Of several rows of a minute the best counts: a portal that cannot reach ClickHouse says nothing about the others.

CREATE TABLE IF NOT EXISTS ${base}.freshness
(
    minute DateTime64(3, 'UTC'),
    state  UInt8 COMMENT '0: up to date. 1: the watermark was more than two minutes old. 2: the data could not be read'
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(minute)
ORDER BY minute
TTL toDateTime(minute) + INTERVAL 90 DAY;
