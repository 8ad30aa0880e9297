-- The history for data teams (see ../0003-history.sql and ../README.md, "History"). Of the LIMIT, see 0001-views.sql.

-- Up to when the days are closed on every shard; 1970 before the first close. Private.
CREATE OR REPLACE VIEW ${base}.history_end
(
    closed DateTime64(3, 'UTC') COMMENT 'The first moment of the day that is not closed',
    today  Date COMMENT 'The day of the last moment that the fold has confirmed, UTC'
)
SQL SECURITY DEFINER
AS SELECT
    (SELECT min(reached) FROM (SELECT max(closed) AS reached FROM ${base}.history_closed GROUP BY shard)) AS closed,
    greatest(toDate(closed), toDate((SELECT max(reached) FROM ${read}.watermarks))) AS today;

-- The days that are not closed yet, in the form of the closed ones. Private. Usually this is today.
CREATE OR REPLACE VIEW ${base}.history_open
SQL SECURITY DEFINER
AS SELECT
    standing.campaign_id AS campaign_id, standing.day AS day, standing.is_deleted AS is_deleted, standing.status AS status,
    standing.category AS category, standing.currency AS currency, standing.pledged_amount AS pledged_amount,
    standing.pledged_platform_amount AS pledged_platform_amount, standing.percent_funded AS percent_funded,
    standing.backer_count AS backer_count, standing.pledge_count AS pledge_count,
    standing.follower_count AS follower_count, standing.updated_at AS updated_at,
    -- The joined columns are null if a query sets join_use_nulls.
    ifNull(latest.is_public, false) AS was_public,
    NOT was_public AND (ifNull(latest.is_known, false) OR NOT ifNull(toDate(standing.launch_date) >= standing.day - 1, false))
        AS is_opening,
    if(was_public, ifNull(latest.category, ''), '') AS previous_category,
    if(was_public, ifNull(latest.pledged_platform_amount, 0), 0) AS previous_platform_amount,
    if(was_public, ifNull(latest.backer_count, 0), 0) AS previous_backer_count,
    if(was_public, ifNull(latest.pledge_count, 0), 0) AS previous_pledge_count
FROM
(
    SELECT
        campaign_id, toDate(updated_at) AS day, 0 AS is_deleted, status, category, currency, pledged_amount,
        pledged_platform_amount, percent_funded, backer_count, pledge_count, follower_count, updated_at, launch_date
    FROM ${read}.campaigns FINAL
    WHERE updated_at >= (SELECT closed FROM ${base}.history_end)
    UNION ALL
    -- Campaigns that are no longer public. Their last row says when they went, if a rebuild has not removed it.
    SELECT
        -- A scalar query gives a nullable value, and a day that could be null would hide the filter on it from the tables.
        campaign_id, toDate(greatest(max(stamp), assumeNotNull((SELECT closed FROM ${base}.history_end)))) AS day, 1, '', '', '', 0, 0, 0,
        0, 0, 0, max(stamp), NULL
    FROM
    (
        SELECT campaign_id, updated_at AS stamp FROM ${base}.history_latest FINAL WHERE is_deleted = 0
        UNION ALL
        SELECT campaign_id, updated_at FROM ${read}.campaigns
        WHERE is_deleted = 1 AND campaign_id IN (SELECT campaign_id FROM ${base}.history_latest FINAL WHERE is_deleted = 0)
    )
    WHERE NOT (campaign_id IN (SELECT campaign_id FROM ${read}.campaigns FINAL))
    GROUP BY campaign_id
) AS standing
LEFT JOIN
(
    SELECT
        campaign_id, true AS is_known, is_deleted = 0 AS is_public, category, pledged_platform_amount, backer_count,
        pledge_count
    FROM ${base}.history_latest FINAL
) AS latest ON latest.campaign_id = standing.campaign_id;

-- All days, without deleted campaigns. Private: it has campaigns that are hidden by now.
CREATE OR REPLACE VIEW ${base}.history_days
SQL SECURITY DEFINER
AS SELECT *
FROM
(
    SELECT *, true AS is_final FROM ${base}.campaign_days FINAL
    WHERE day < (SELECT toDate(closed) FROM ${base}.history_end)
    UNION ALL
    SELECT *, false AS is_final FROM ${base}.history_open
)
-- Nothing ranks after a tombstone, so no FINAL is needed to find them.
WHERE NOT (campaign_id IN (SELECT campaign_id FROM ${ledger}.campaign_ledger WHERE version = 18446744073709551615));

CREATE OR REPLACE VIEW ${views}.campaign_days
(
    campaign_id             String COMMENT 'Campaign; only those that are public at present have rows',
    day                     Date COMMENT 'Day on which the campaign changed, UTC',
    status                  LowCardinality(String) COMMENT 'LIVE, FUNDED, FAILED or CANCELLED, at the end of the day',
    category                LowCardinality(String) COMMENT 'Main category at the end of the day',
    currency                LowCardinality(String) COMMENT 'ISO 4217 code of pledged_amount and pledged',
    pledged_amount          Decimal(38, 4) COMMENT 'Sum of the pledges that count at the end of the day, in major units of currency; exact',
    pledged                 Float64 COMMENT 'pledged_amount as a floating-point number, in major units of currency',
    pledged_platform_amount Decimal(38, 4) COMMENT 'The same sum in major units of the platform currency; exact',
    pledged_platform        Float64 COMMENT 'pledged_platform_amount as a floating-point number, in major units of the platform currency',
    percent_funded          Decimal(38, 2) COMMENT '100 * pledged_amount / goal, percent; exact',
    percent                 Float64 COMMENT 'percent_funded as a floating-point number, percent',
    backer_count            UInt64 COMMENT 'Distinct backers with a pledge that counts, at the end of the day',
    pledge_count            UInt64 COMMENT 'Pledges that count, at the end of the day',
    follower_count          UInt64 COMMENT 'Followers at the end of the day',
    is_final                Bool COMMENT 'False: the day is not over, and the row may still change'
)
SQL SECURITY DEFINER
AS SELECT
    campaign_id, day, status, category, currency, pledged_amount, toFloat64(pledged_amount) AS pledged,
    pledged_platform_amount, toFloat64(pledged_platform_amount) AS pledged_platform, percent_funded,
    toFloat64(percent_funded) AS percent, backer_count, pledge_count, follower_count, is_final
FROM ${base}.history_days
WHERE is_deleted = 0 AND campaign_id IN (SELECT campaign_id FROM ${read}.campaigns FINAL)
LIMIT 18446744073709551615
COMMENT 'Each public campaign at the end of each UTC day on which it changed';

CREATE OR REPLACE VIEW ${views}.campaign_funding_days
(
    campaign_id                 String COMMENT 'Campaign; only those that are public at present have rows',
    category                    LowCardinality(String) COMMENT 'Main category at the end of the day',
    day                         Date COMMENT 'Day, UTC; no day is missing while the campaign is public and LIVE',
    new_pledged_platform_amount Decimal(38, 4) COMMENT 'Change on this day, below 0 after refunds, in major units of the platform currency; exact',
    new_pledged_platform        Float64 COMMENT 'new_pledged_platform_amount as a floating-point number, in major units of the platform currency',
    new_backer_count            Int64 COMMENT 'Change of the number of backers on this day',
    new_pledge_count            Int64 COMMENT 'Change of the number of pledges on this day',
    opening_platform_amount     Decimal(38, 4) COMMENT 'What it already had when the history first showed it, or showed it again, in major units of the platform currency; exact',
    opening_platform            Float64 COMMENT 'opening_platform_amount as a floating-point number, in major units of the platform currency',
    pledged_platform_amount     Decimal(38, 4) COMMENT 'What it had at the end of the day, in major units of the platform currency; exact',
    pledged_platform            Float64 COMMENT 'pledged_platform_amount as a floating-point number, in major units of the platform currency'
)
SQL SECURITY DEFINER
AS WITH (SELECT today FROM ${base}.history_end) AS today
SELECT
    campaign_id,
    category,
    known_day + gap AS day,
    if(gap = 0, gained, 0)::Decimal(38, 4) AS new_pledged_platform_amount,
    toFloat64(new_pledged_platform_amount) AS new_pledged_platform,
    if(gap = 0, gained_backers, 0)::Int64 AS new_backer_count,
    if(gap = 0, gained_pledges, 0)::Int64 AS new_pledge_count,
    if(gap = 0, opening, 0)::Decimal(38, 4) AS opening_platform_amount,
    toFloat64(opening_platform_amount) AS opening_platform,
    pledged AS pledged_platform_amount,
    toFloat64(pledged) AS pledged_platform
FROM
(
    SELECT
        campaign_id, category, status, is_deleted, day AS known_day, pledged_platform_amount AS pledged,
        if(is_opening, 0, pledged_platform_amount - previous_platform_amount) AS gained,
        if(is_opening, 0, toInt64(backer_count) - toInt64(previous_backer_count)) AS gained_backers,
        if(is_opening, 0, toInt64(pledge_count) - toInt64(previous_pledge_count)) AS gained_pledges,
        if(is_opening, pledged_platform_amount, 0) AS opening,
        leadInFrame(toNullable(day)) OVER (
            PARTITION BY campaign_id ORDER BY day ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next_day
    FROM ${base}.history_days
    WHERE campaign_id IN (SELECT campaign_id FROM ${read}.campaigns FINAL)
)
-- The row stands until the next one. The last one stands until today while the campaign is LIVE.
ARRAY JOIN range(toUInt32(multiIf(isNotNull(next_day), assumeNotNull(next_day),
    status = 'LIVE', greatest(known_day, today) + 1, known_day + 1) - known_day)) AS gap
-- From the day on which it was hidden until it was shown again it has no rows.
WHERE is_deleted = 0
LIMIT 18446744073709551615
COMMENT 'What each public campaign gained on each UTC day';

-- What each row of the history adds to its day. A campaign that changes its category departs from one and opens the other:
-- these two entries are marked, because they are nothing for the whole platform. Private.
CREATE OR REPLACE VIEW ${base}.history_moves
(
    day        Date COMMENT 'Day, UTC',
    category   LowCardinality(String) COMMENT 'Main category',
    new_amount Decimal(38, 4) COMMENT 'Pledged on this day, in major units of the platform currency, like the next two amounts',
    new_pledges Int64 COMMENT 'Pledges of this day',
    opening    Decimal(38, 4) COMMENT 'What came with a campaign',
    departed   Decimal(38, 4) COMMENT 'What left with a campaign',
    campaigns  Int64 COMMENT 'Campaigns that came, less those that left',
    is_between Bool COMMENT 'From one category to another'
)
SQL SECURITY DEFINER
AS SELECT
    day, move.1 AS category, move.2 AS new_amount, move.3 AS new_pledges, move.4 AS opening, move.5 AS departed,
    move.6 AS campaigns, move.7 AS is_between
FROM
(
    WITH
        toDecimal128(0, 4) AS none,
        if(was_public OR is_opening, none, pledged_platform_amount) + if(was_public, pledged_platform_amount - previous_platform_amount, none) AS new_amount,
        multiIf(was_public, toInt64(pledge_count) - toInt64(previous_pledge_count), is_opening, 0, toInt64(pledge_count)) AS new_pledges,
        was_public AND category != previous_category AS is_moved
    SELECT
        day,
        arrayJoin(if(is_deleted = 1,
            [(previous_category, none, toInt64(0), none, previous_platform_amount, toInt64(-1), false)],
            arrayConcat(
                [(category, new_amount, new_pledges, if(is_opening, pledged_platform_amount, none), none, toInt64(NOT was_public), false)],
                if(is_moved, [(category, none, toInt64(0), previous_platform_amount, none, toInt64(1), true),
                    (previous_category, none, toInt64(0), none, previous_platform_amount, toInt64(-1), true)], [])))) AS move
    FROM ${base}.history_days
);

CREATE OR REPLACE VIEW ${views}.category_funding_days
(
    category                    LowCardinality(String) COMMENT 'Main category',
    day                         Date COMMENT 'Day, UTC; no day is missing from the first one of the category until today',
    new_pledged_platform_amount Decimal(38, 4) COMMENT 'Pledged on this day less refunds, in major units of the platform currency; exact',
    new_pledged_platform        Float64 COMMENT 'new_pledged_platform_amount as a floating-point number, in major units of the platform currency',
    new_pledge_count            Int64 COMMENT 'Change of the number of pledges on this day',
    opening_platform_amount     Decimal(38, 4) COMMENT 'What campaigns already had when the history first showed them, or showed them again, or when they came from another category, in major units of the platform currency; exact',
    opening_platform            Float64 COMMENT 'opening_platform_amount as a floating-point number, in major units of the platform currency',
    departed_platform_amount    Decimal(38, 4) COMMENT 'What went with campaigns that were no longer public, or that went to another category, in major units of the platform currency; exact',
    departed_platform           Float64 COMMENT 'departed_platform_amount as a floating-point number, in major units of the platform currency',
    pledged_platform_amount     Decimal(38, 4) COMMENT 'Of the public campaigns at the end of the day: the day before + new + opening - departed, in major units of the platform currency; exact',
    pledged_platform            Float64 COMMENT 'pledged_platform_amount as a floating-point number, in major units of the platform currency',
    campaigns                   UInt64 COMMENT 'Public campaigns at the end of the day'
)
SQL SECURITY DEFINER
AS SELECT
    category,
    known_day + gap AS day,
    if(gap = 0, new_amount, 0)::Decimal(38, 4) AS new_pledged_platform_amount,
    toFloat64(new_pledged_platform_amount) AS new_pledged_platform,
    if(gap = 0, new_pledges, 0)::Int64 AS new_pledge_count,
    if(gap = 0, opening, 0)::Decimal(38, 4) AS opening_platform_amount,
    toFloat64(opening_platform_amount) AS opening_platform,
    if(gap = 0, departed, 0)::Decimal(38, 4) AS departed_platform_amount,
    toFloat64(departed_platform_amount) AS departed_platform,
    standing AS pledged_platform_amount,
    toFloat64(standing) AS pledged_platform,
    toUInt64(standing_campaigns) AS campaigns
FROM
(
    -- Here, where it is used: on a cluster a query may say that no name of a WITH is known within (enable_global_with_statement).
    WITH (SELECT today FROM ${base}.history_end) AS today
    SELECT
        category, arraySort(groupArray((day, new_amount, new_pledges, opening, departed, campaigns))) AS known,
        known.1 AS days, known.2 AS amounts, known.3 AS pledges, known.4 AS openings, known.5 AS departures,
        arrayCumSum((a, o, d) -> a + o - d, amounts, openings, departures) AS sums,
        arrayCumSum(known.6) AS counts,
        -- The days until the next known one, or until today.
        arrayMap(n -> range(toUInt32(if(n < length(days), days[n + 1], greatest(days[n], today) + 1) - days[n])),
            arrayEnumerate(days)) AS gaps
    FROM
    (
        SELECT day, category, sum(new_amount) AS new_amount, sum(new_pledges) AS new_pledges, sum(opening) AS opening,
            sum(departed) AS departed, sum(campaigns) AS campaigns
        FROM ${base}.history_moves
        GROUP BY day, category
    )
    GROUP BY category
)
ARRAY JOIN
    days AS known_day, amounts AS new_amount, pledges AS new_pledges, openings AS opening, departures AS departed,
    sums AS standing, counts AS standing_campaigns, gaps AS own_gaps
ARRAY JOIN own_gaps AS gap
COMMENT 'What the public campaigns of each category gained on each UTC day';

CREATE OR REPLACE VIEW ${views}.funding_days
(
    day                         Date COMMENT 'Day, UTC; no day is missing from the first one of the history until today',
    new_pledged_platform_amount Decimal(38, 4) COMMENT 'Pledged on this day less refunds, in major units of the platform currency; exact',
    new_pledged_platform        Float64 COMMENT 'new_pledged_platform_amount as a floating-point number, in major units of the platform currency',
    new_pledge_count            Int64 COMMENT 'Change of the number of pledges on this day',
    opening_platform_amount     Decimal(38, 4) COMMENT 'What campaigns already had when the history first showed them, or showed them again, in major units of the platform currency; exact',
    opening_platform            Float64 COMMENT 'opening_platform_amount as a floating-point number, in major units of the platform currency',
    departed_platform_amount    Decimal(38, 4) COMMENT 'What went with campaigns that were no longer public, in major units of the platform currency; exact',
    departed_platform           Float64 COMMENT 'departed_platform_amount as a floating-point number, in major units of the platform currency',
    pledged_platform_amount     Decimal(38, 4) COMMENT 'Of the public campaigns at the end of the day: the day before + new + opening - departed, in major units of the platform currency; exact',
    pledged_platform            Float64 COMMENT 'pledged_platform_amount as a floating-point number, in major units of the platform currency',
    campaigns                   UInt64 COMMENT 'Public campaigns at the end of the day'
)
SQL SECURITY DEFINER
AS SELECT
    known_day + gap AS day,
    if(gap = 0, new_amount, 0)::Decimal(38, 4) AS new_pledged_platform_amount,
    toFloat64(new_pledged_platform_amount) AS new_pledged_platform,
    if(gap = 0, new_pledges, 0)::Int64 AS new_pledge_count,
    if(gap = 0, opening, 0)::Decimal(38, 4) AS opening_platform_amount,
    toFloat64(opening_platform_amount) AS opening_platform,
    if(gap = 0, departed, 0)::Decimal(38, 4) AS departed_platform_amount,
    toFloat64(departed_platform_amount) AS departed_platform,
    standing AS pledged_platform_amount,
    toFloat64(standing) AS pledged_platform,
    toUInt64(standing_campaigns) AS campaigns
FROM
(
    WITH (SELECT today FROM ${base}.history_end) AS today
    SELECT
        arraySort(groupArray((day, new_amount, new_pledges, opening, departed, campaigns))) AS known,
        known.1 AS days, known.2 AS amounts, known.3 AS pledges, known.4 AS openings, known.5 AS departures,
        arrayCumSum((a, o, d) -> a + o - d, amounts, openings, departures) AS sums,
        arrayCumSum(known.6) AS counts,
        -- The days until the next known one, or until today.
        arrayMap(n -> range(toUInt32(if(n < length(days), days[n + 1], greatest(days[n], today) + 1) - days[n])),
            arrayEnumerate(days)) AS gaps
    FROM
    (
        SELECT day, sum(new_amount) AS new_amount, sum(new_pledges) AS new_pledges, sum(opening) AS opening,
            sum(departed) AS departed, sum(campaigns) AS campaigns
        FROM ${base}.history_moves
        WHERE NOT is_between
        GROUP BY day
    )
    HAVING count() > 0
)
ARRAY JOIN
    days AS known_day, amounts AS new_amount, pledges AS new_pledges, openings AS opening, departures AS departed,
    sums AS standing, counts AS standing_campaigns, gaps AS own_gaps
ARRAY JOIN own_gaps AS gap
COMMENT 'What the public campaigns of the whole platform gained on each UTC day';
