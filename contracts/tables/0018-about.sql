-- What the data teams' views are, and how current they are.
--
-- The watermark is that of 0008-watermark.sql. The clock is the upper bound, because the floor is ahead of a clock that was set
-- back. Nothing else goes into it: a query that reads `about` first, and the data after it, has every change with an earlier stamp.

CREATE OR REPLACE VIEW ${views}.about
(
    version           String COMMENT 'Version of Pledgeview that last began to fill these views; empty: unknown',
    platform_currency String COMMENT 'ISO 4217 code of the columns pledged_platform and pledged_platform_amount; empty: no service has started yet',
    as_of             DateTime64(3, 'UTC') COMMENT 'Watermark, UTC: everything stamped (updated_at) before this moment is in the views; 1970 if nothing was folded yet',
    freshness_seconds Float64 COMMENT 'Age of as_of now, seconds',
    history_from      Nullable(Date) COMMENT 'First day of the history, UTC; null: there is no history yet',
    campaigns         UInt64 COMMENT 'Number of public campaigns'
)
SQL SECURITY DEFINER
AS SELECT
    (
        SELECT argMax(JSONExtractString(detail, 'version'), noted_at)
        FROM ${model}.projector_log
        WHERE kind = 'started'
    ) AS version,
    (SELECT any(fingerprint) FROM ${model}.identity WHERE setting = 'PLEDGEVIEW_PLATFORM_CURRENCY') AS platform_currency,
    least(now64(3, 'UTC'), ifNull((SELECT reached FROM ${model}.watermark), toDateTime64(0, 3, 'UTC'))) AS as_of,
    dateDiff('millisecond', as_of, now64(3, 'UTC')) / 1000 AS freshness_seconds,
    (
        SELECT minOrNull(day)
        FROM (SELECT day FROM ${model}.campaign_days UNION ALL SELECT toDate(updated_at) FROM ${model}.campaigns FINAL)
    ) AS history_from,
    (SELECT count() FROM ${model}.campaigns FINAL) AS campaigns
COMMENT 'These views themselves, exactly one row: version, currency, and how current they are';
