-- Two years of history for the questions bench (contracts/tables/0004-history.sql), computed from the folded campaigns: a
-- quarter of them, and all that are LIVE, changed on 30 days in a row, and the others had ended before the history began. The
-- days of the live ones are the last 30. Days are closed up to today.
INSERT INTO ${base}.campaign_days
    (campaign_id, day, is_deleted, status, category, currency, pledged_amount, pledged_platform_amount, percent_funded,
     backer_count, pledge_count, follower_count, updated_at, was_public, is_opening, previous_category,
     previous_platform_amount, previous_backer_count, previous_pledge_count)
WITH
    toDate(now('UTC')) AS today,
    status = 'LIVE' OR cityHash64(campaign_id) % 4 = 0 AS is_within,
    today - if(status = 'LIVE', 30, 31 + cityHash64(campaign_id, 'day') % 700) AS first
SELECT
    campaign_id,
    if(is_within, first + n, today - 731) AS day,
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
    toDateTime64(day + 1, 3, 'UTC') - INTERVAL 1 SECOND,
    is_within AND n > 0,
    NOT is_within,
    if(is_within AND n > 0, category, ''),
    if(is_within, pledged_platform_amount * n / 30, 0),
    if(is_within, intDiv(backer_count * n, 30), 0),
    if(is_within, intDiv(pledge_count * n, 30), 0)
FROM ${read}.campaigns FINAL
ARRAY JOIN if(status = 'LIVE' OR cityHash64(campaign_id) % 4 = 0, range(30), [0]) AS n
SETTINGS async_insert = 0, max_insert_threads = 2;

INSERT INTO ${base}.history_latest
SELECT * FROM ${base}.campaign_days ORDER BY campaign_id, day DESC LIMIT 1 BY campaign_id
SETTINGS async_insert = 0;

INSERT INTO ${base}.history_closed (shard, closed_from, closed)
SELECT shard, toDateTime64(toDate(now('UTC')), 3, 'UTC'), toDateTime64(toDate(now('UTC')), 3, 'UTC')
FROM ${read}.watermarks GROUP BY shard
SETTINGS async_insert = 0;

-- One campaign in twenty changed today. Without this all of them did, as after a bulk load.
INSERT INTO ${read}.campaigns
SELECT * REPLACE (updated_at - INTERVAL 60 DAY AS updated_at, fold_id + 1 AS fold_id)
FROM ${read}.campaigns FINAL
WHERE cityHash64(campaign_id, 'today') % 20 != 0
SETTINGS async_insert = 0, max_insert_threads = 2;

-- As the tables are some hours later.
OPTIMIZE TABLE ${read}.campaigns FINAL;
OPTIMIZE TABLE ${base}.campaign_days FINAL;
OPTIMIZE TABLE ${base}.history_latest FINAL;
