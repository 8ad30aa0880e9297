-- Two years of history for the questions bench (contracts/tables/0003-history.sql), computed from the folded campaigns: a
-- quarter of them, and all that are LIVE, changed on 30 days in a row, and the others had ended before the history began. The
-- days of the live ones are the last 30. The first day of the history is the first one of all.
TRUNCATE TABLE ${base}.campaign_days;

INSERT INTO ${base}.campaign_days
    (campaign_id, day, source, is_complete, is_deleted, status, category, currency, pledged_amount, pledged_platform_amount, percent_funded,
     backer_count, pledge_count, follower_count, launched, updated_at)
WITH
    toDate(now('UTC')) AS today,
    status = 'LIVE' OR cityHash64(campaign_id) % 4 = 0 AS is_within,
    today - if(status = 'LIVE', 30, 31 + cityHash64(campaign_id, 'day') % 700) AS first
SELECT
    campaign_id,
    if(is_within, first + n, today - 731) AS day,
    'kept',
    true,
    0,
    if(is_within AND n < 29, 'LIVE', status),
    category,
    currency,
    if(is_within, pledged_amount * (n + 1) / 30, pledged_amount),
    if(is_within, pledged_platform_amount * (n + 1) / 30, pledged_platform_amount),
    if(is_within, percent_funded * (n + 1) / 30, percent_funded),
    if(is_within, intDiv(backer_count * (n + 1), 30), backer_count),
    if(is_within, intDiv(pledge_count * (n + 1), 30), pledge_count),
    follower_count,
    if(is_within, first, today - 800),
    toDateTime64(day + 1, 3, 'UTC') - INTERVAL 1 SECOND
FROM ${read}.campaigns FINAL
ARRAY JOIN if(status = 'LIVE' OR cityHash64(campaign_id) % 4 = 0, range(30), [0]) AS n
SETTINGS async_insert = 0, max_insert_threads = 2;

-- As the tables are some hours later.
OPTIMIZE TABLE ${read}.campaigns FINAL;
OPTIMIZE TABLE ${base}.campaign_days FINAL;
