-- The data teams' contract: views with plain names, only public rows, no backer and no single pledge, and no need for
-- FINAL. Money is exact (Decimal) and in major units. The query service reads the same views.
--
-- Many tools (pandas, BI) read Decimal(38, 4) as text or as an object, and cannot sum it. So each amount has a Float64 beside it, with a
-- short name: `pledged` is `pledged_amount`. The query service reads the exact columns. Every view has a comment, and every column has
-- one with its unit. So system.tables and system.columns are the data teams' dictionary.
--
-- LIMIT 18446744073709551615 keeps the conditions of a query out of a view. An analyst's condition may fail, and its error names the
-- value that it failed on. Without the LIMIT, ClickHouse evaluates conditions on rows that FINAL has not removed: it reads only the
-- parts that can have a wanted key, so nothing replaces the other rows of these parts. Some settings do it for all rows, and a scalar
-- subquery may have any setting. So a query on these views reads all rows of its columns (the query service reads by key elsewhere).

${campaigns_view};

CREATE OR REPLACE VIEW ${views}.rewards
(
    campaign_id        String COMMENT 'Campaign of the reward',
    reward_id          String COMMENT 'Identifier within the campaign',
    title              String COMMENT 'Title',
    description        String COMMENT 'Description',
    currency           LowCardinality(String) COMMENT 'ISO 4217 code of amount and price',
    amount             Decimal(38, 4) COMMENT 'Price of the tier, in major units of currency; exact',
    price              Float64 COMMENT 'Price of the tier, in major units of currency; amount as a floating-point number',
    quantity_available Nullable(UInt64) COMMENT 'How many there are; null: unlimited',
    quantity_claimed   UInt64 COMMENT 'Number of pledges that count and chose this tier; a pledge may be above its price',
    quantity_remaining Nullable(UInt64) COMMENT 'How many are left, never below 0; null: unlimited',
    updated_at         DateTime64(3, 'UTC') COMMENT 'When something of the campaign last changed, UTC'
)
SQL SECURITY DEFINER
AS SELECT
    campaign_id, r.reward_id AS reward_id, r.title AS title, r.description AS description, currency,
    r.amount AS amount, toFloat64(r.amount) AS price, r.quantity_available AS quantity_available,
    r.quantity_claimed AS quantity_claimed, r.quantity_remaining AS quantity_remaining, updated_at
FROM ${read}.campaigns FINAL
ARRAY JOIN rewards AS r
LIMIT 18446744073709551615
COMMENT 'Reward tiers of public campaigns, one row each, as they are now';

CREATE OR REPLACE VIEW ${views}.categories
(
    category                LowCardinality(String) COMMENT 'Main category',
    project_count           UInt64 COMMENT 'Number of public campaigns',
    live_count              UInt64 COMMENT 'Of these, LIVE',
    funded_count            UInt64 COMMENT 'Of these, FUNDED',
    pledge_count            UInt64 COMMENT 'Number of pledges that count',
    pledged_platform_amount Decimal(38, 4) COMMENT 'Sum of the pledges that count, in major units of the platform currency; exact',
    pledged_platform        Float64 COMMENT 'The same sum in major units of the platform currency; pledged_platform_amount as a floating-point number'
)
SQL SECURITY DEFINER
AS SELECT
    c.category AS category,
    count() AS project_count,
    countIf(c.status = 'LIVE') AS live_count,
    countIf(c.status = 'FUNDED') AS funded_count,
    sum(c.pledge_count) AS pledge_count,
    sum(c.pledged_platform_amount) AS pledged_platform_amount,
    toFloat64(sum(c.pledged_platform_amount)) AS pledged_platform
FROM ${read}.campaigns AS c FINAL
GROUP BY category
LIMIT 18446744073709551615
COMMENT 'Categories with public campaigns, one row each, as they are now';

-- Everything except the backers is a sum over the read rows, as they were folded. Backers are counted in the ledger, because
-- one who backed several campaigns counts once. The ledger is ahead of the read rows until the next fold, so during a backlog
-- it has backers whose pledges are not folded yet. They may be counted early, but never more backers than pledges.
CREATE OR REPLACE VIEW ${views}.platform_totals
(
    total_raised       Decimal(38, 4) COMMENT 'Sum of the pledges that count, of public campaigns, in major units of the platform currency; exact',
    raised             Float64 COMMENT 'The same sum in major units of the platform currency; total_raised as a floating-point number',
    total_pledges      UInt64 COMMENT 'Number of pledges that count, of public campaigns',
    total_backers      UInt64 COMMENT 'Distinct backers with such a pledge; one who backed several campaigns counts once',
    total_creators     UInt64 COMMENT 'Distinct creators of public campaigns',
    projects_total     UInt64 COMMENT 'Number of public campaigns',
    projects_live      UInt64 COMMENT 'Of these, LIVE',
    projects_funded    UInt64 COMMENT 'Of these, FUNDED',
    projects_failed    UInt64 COMMENT 'Of these, FAILED',
    projects_cancelled UInt64 COMMENT 'Of these, CANCELLED'
)
SQL SECURITY DEFINER
AS SELECT
    sum(pledged_platform_amount) AS total_raised,
    toFloat64(sum(pledged_platform_amount)) AS raised,
    sum(pledge_count) AS total_pledges,
    least(
        (
            SELECT uniqExact(backer_hash)
            FROM ${ledger}.pledge_ledger FINAL
            -- A hash of an id is found faster than the id (0002-history-views.sql).
            WHERE counts AND cityHash64(campaign_id) IN (SELECT cityHash64(campaign_id) FROM ${read}.campaigns FINAL)
        ),
        total_pledges
    ) AS total_backers,
    uniqExact(creator_id) AS total_creators,
    count() AS projects_total,
    countIf(status = 'LIVE') AS projects_live,
    countIf(status = 'FUNDED') AS projects_funded,
    countIf(status = 'FAILED') AS projects_failed,
    countIf(status = 'CANCELLED') AS projects_cancelled
FROM ${read}.campaigns FINAL
COMMENT 'The platform, exactly one row, as it is now';

-- What the data teams' views are, and how current they are.
--
-- The watermark is the view `watermark`. The clock is the upper bound, because the floor is ahead of a clock that was set
-- back. Nothing else goes into it: a query that reads `about` first, and the data after it, has every change with an earlier stamp. Views of the history
-- follow, mostly within half a minute.

CREATE OR REPLACE VIEW ${views}.about
(
    version           String COMMENT 'Version of Pledgeview that last began to fill these views; empty: unknown',
    platform_currency String COMMENT 'ISO 4217 code of the columns pledged_platform and pledged_platform_amount; empty: no service has started yet',
    as_of             DateTime64(3, 'UTC') COMMENT 'Watermark, UTC: everything stamped (updated_at) before this moment is in the views, those of the history excepted: they follow, mostly within half a minute; 1970 if nothing was folded yet',
    freshness_seconds Float64 COMMENT 'Age of as_of now, seconds',
    history_from      Nullable(Date) COMMENT 'First day of the history, UTC, derived days and those of campaigns that are hidden by now included; null: there is no history yet',
    history_kept_from Nullable(Date) COMMENT 'First day of the history that was kept as it was shown, UTC. The days before it are derived',
    history_note      String COMMENT 'What a question that reaches before history_kept_from has to know',
    campaigns         UInt64 COMMENT 'Number of public campaigns',
    last_event_at     DateTime64(3, 'UTC') COMMENT 'When the latest event that is in the ledger entered the log, UTC; 1970 if there is none',
    last_fold_at      DateTime64(3, 'UTC') COMMENT 'When the latest fold of events ended, UTC; 1970 if there was none in the last 60 days'
)
SQL SECURITY DEFINER
AS SELECT
    (
        SELECT argMax(JSONExtractString(detail, 'version'), noted_at)
        FROM ${base}.projector_log
        WHERE kind = 'started'
    ) AS version,
    (SELECT any(fingerprint) FROM ${base}.identity WHERE setting = 'PLEDGEVIEW_PLATFORM_CURRENCY') AS platform_currency,
    least(now64(3, 'UTC'), ifNull((SELECT reached FROM ${read}.watermark), toDateTime64(0, 3, 'UTC'))) AS as_of,
    dateDiff('millisecond', as_of, now64(3, 'UTC')) / 1000 AS freshness_seconds,
    -- Processes read this view at each scrape, and it computes all of its columns each time. So no campaign is looked up here.
    (SELECT minOrNull(day) FROM ${base}.campaign_days) AS history_from,
    (SELECT minOrNull(begun) FROM ${base}.history_marks) AS history_kept_from,
    if(history_kept_from IS NULL, 'There is no history yet',
        concat('Days before ', toString(assumeNotNull(history_kept_from)), ' are derived from the pledges that counted when the history began. ',
            'Where complete_from is after the launch of a campaign, its days before are not known: leave it out of questions about ',
            'the life of campaigns, and say how many you left out')) AS history_note,
    (SELECT count() FROM ${read}.campaigns FINAL) AS campaigns,
    -- Producers may write any time.
    (
        SELECT fromUnixTimestamp64Milli(greatest(0, least(max(last_at), toUnixTimestamp64Milli(now64(3)))), 'UTC')
        FROM ${ledger}.positions
    ) AS last_event_at,
    (SELECT max(written_at) FROM ${ledger}.fold_progress) AS last_fold_at
COMMENT 'These views themselves, exactly one row: version, currency, and how current they are';
