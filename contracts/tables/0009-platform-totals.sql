-- The totals of the platform, for data teams (see 0004-views.sql).
--
-- Everything except the backers is a sum over the read rows, as they were folded. Backers are counted in the ledger, because
-- one who backed several campaigns counts once. The ledger is ahead of the read rows until the next fold, so during a backlog
-- it has backers whose pledges are not folded yet. They may be counted early, but never more backers than pledges.

CREATE OR REPLACE VIEW ${views}.platform_totals
(
    total_raised      Decimal(38, 4) COMMENT 'Sum of pledged_platform_amount, in major units of the platform currency',
    total_pledges     UInt64 COMMENT 'Pledges that count, of public campaigns',
    total_backers     UInt64 COMMENT 'Distinct backers with such a pledge; one who backed several campaigns counts once',
    total_creators    UInt64 COMMENT 'Distinct creators of public campaigns',
    projects_total    UInt64 COMMENT 'Public campaigns',
    projects_live     UInt64 COMMENT 'Of these, LIVE',
    projects_funded   UInt64 COMMENT 'Of these, FUNDED',
    projects_failed   UInt64 COMMENT 'Of these, FAILED',
    projects_cancelled UInt64 COMMENT 'Of these, CANCELLED'
)
SQL SECURITY DEFINER
AS SELECT
    sum(pledged_platform_amount) AS total_raised,
    sum(pledge_count) AS total_pledges,
    least(
        (
            SELECT uniqExact(backer_hash)
            FROM ${model}.pledge_ledger FINAL
            WHERE counts AND campaign_id IN (SELECT campaign_id FROM ${model}.campaigns FINAL)
        ),
        total_pledges
    ) AS total_backers,
    uniqExact(creator_id) AS total_creators,
    count() AS projects_total,
    countIf(status = 'LIVE') AS projects_live,
    countIf(status = 'FUNDED') AS projects_funded,
    countIf(status = 'FAILED') AS projects_failed,
    countIf(status = 'CANCELLED') AS projects_cancelled
FROM ${model}.campaigns FINAL;
