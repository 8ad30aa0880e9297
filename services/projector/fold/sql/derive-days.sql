-- Derives the days before the first one of the history, from the pledges that count now: each counts from its own day on. Nobody kept what
-- was shown on these days. So pledges that were cancelled since are missing, and a pledge that changed stands on the day of its change.
--
-- Only campaigns that are public, that were shown on the first day, and that are older than it, get such days: from the launch to the end,
-- or to the day before the first one. A pledge whose state changed later than the end (as when it is collected) counts from the day of the end on.
-- They have no text: the views show them only while the campaign is public, in the category of its first kept day.
-- One statement, one state of the ledger. It can be repeated: days of an earlier time are written again, so that none is left over.
INSERT INTO ${base}.campaign_days
    (campaign_id, day, source, is_complete, is_deleted, status, currency, pledged_amount, pledged_platform_amount, percent_funded,
    backer_count, pledge_count, follower_count, launched, updated_at)
WITH
    toDate({begun:UInt16}) AS begun,
    touched AS
    (
        SELECT campaign_id FROM ${base}.campaign_days
        WHERE day = begun AND source = 'kept' AND updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') AND ${piece}
    ),
    campaigns AS
    (
        SELECT shown.*, known.goal_amount_minor, known.currency_digits
        FROM
        (
            SELECT campaign_id, status, currency, updated_at, toDate(assumeNotNull(launch_date)) AS launched,
                least(ifNull(toDate(end_date), begun), begun) AS ended, ifNull(toDate(end_date), toDate(65535)) AS last
            FROM ${read}.campaigns FINAL
            WHERE campaign_id IN (SELECT campaign_id FROM touched) AND launch_date IS NOT NULL AND toDate(launch_date) < begun - 1
        ) AS shown
        INNER JOIN
        (
            SELECT campaign_id, goal_amount_minor, currency_digits FROM ${ledger}.campaign_ledger FINAL
            WHERE campaign_id IN (SELECT campaign_id FROM touched)
        ) AS known ON known.campaign_id = shown.campaign_id
    ),
    pledges AS
    (
        SELECT own.campaign_id AS campaign_id, greatest(launched, least(pledged_on, ended)) AS day,
            pledged_on < launched OR pledged_on > last AS is_moved, backer_hash, amount_minor, platform_amount_minor
        FROM (SELECT * FROM ${ledger}.pledge_ledger FINAL PREWHERE campaign_id IN (SELECT campaign_id FROM touched) WHERE counts) AS own
        INNER JOIN campaigns ON campaigns.campaign_id = own.campaign_id
    ),
    days AS
    (
        SELECT campaign_id, day, sum(minor) AS minor, sum(platform) AS platform, sum(pledges) AS pledges, sum(backers) AS backers,
            max(is_moved) AS is_moved
        FROM
        (
            SELECT campaign_id, day, sum(toInt128(amount_minor)) AS minor, sum(toInt128(platform_amount_minor)) AS platform,
                count() AS pledges, toUInt64(0) AS backers, max(is_moved) AS is_moved
            FROM pledges GROUP BY campaign_id, day
            UNION ALL
            -- A backer counts from the first day on.
            SELECT campaign_id, day, 0, 0, 0, count(), 0
            FROM (SELECT campaign_id, backer_hash, min(day) AS day FROM pledges GROUP BY campaign_id, backer_hash)
            GROUP BY campaign_id, day
            UNION ALL
            SELECT campaign_id, arrayJoin([launched, ended]), 0, 0, 0, 0, 0 FROM campaigns
            UNION ALL
            SELECT campaign_id, day, 0, 0, 0, 0, 0 FROM ${base}.campaign_days
            WHERE source = 'derived' AND campaign_id IN (SELECT campaign_id FROM touched)
        )
        WHERE day < begun
        GROUP BY campaign_id, day
    ),
    sums AS
    (
        SELECT campaign_id, day, sum(minor) OVER until_day AS minor, sum(platform) OVER until_day AS platform,
            sum(pledges) OVER until_day AS pledges, sum(backers) OVER until_day AS backers,
            max(is_moved) OVER (PARTITION BY campaign_id) AS is_moved
        FROM days
        WINDOW until_day AS (PARTITION BY campaign_id ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    )
SELECT
    sums.campaign_id, day, 'derived', NOT is_moved, 0, if(day < ended, 'LIVE', status), currency,
    toDecimal128(minor, 4) / [1, 10, 100, 1000, 10000][currency_digits + 1],
    toDecimal128(platform, 4) / [1, 10, 100, 1000, 10000][{platform_digits:UInt8} + 1],
    -- As in fold-campaigns.sql.
    if(goal_amount_minor = 0, toDecimal128(0, 2),
        toDecimal128(intDiv(toInt256(minor) * 20000 + goal_amount_minor, 2 * toInt256(goal_amount_minor)), 2) / 100),
    backers, pledges, 0, launched, updated_at
FROM sums
INNER JOIN campaigns ON campaigns.campaign_id = sums.campaign_id
WHERE ${fence}
SETTINGS max_execution_time = ${seconds_max}, max_memory_usage = ${memory_bytes_max}, async_insert = 0, join_use_nulls = 0
