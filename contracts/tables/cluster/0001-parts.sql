-- What each shard adds to the views of a cluster that need more than rows (services/tables/schema/cluster-views.ts).
--
-- Each of these views reads its own shard only. Whoever reads a view of the whole cluster may read those of `_parts` too, because
-- ClickHouse sends the reader's name to the other shards and checks the reader's rights there. So they show no more than the
-- public views. What may not be shown is private, and 0003-people.sql has what is counted from it.

-- The sums of the shard, and its name, by which the whole notices whether the same shards were counted (0002-wholes.sql).
CREATE OR REPLACE VIEW ${views}_parts.platform_sums
SQL SECURITY DEFINER
AS SELECT
    getMacro('shard') AS shard,
    sum(pledged_platform_amount) AS total_raised,
    sum(pledge_count) AS total_pledges,
    count() AS projects_total,
    countIf(status = 'LIVE') AS projects_live,
    countIf(status = 'FUNDED') AS projects_funded,
    countIf(status = 'FAILED') AS projects_failed,
    countIf(status = 'CANCELLED') AS projects_cancelled
FROM ${read}.campaigns FINAL;

-- The history of the shard by day, and by day and category, as the public views sum it.
CREATE OR REPLACE VIEW ${views}_parts.history_totals
SQL SECURITY DEFINER
AS SELECT day, new_amount, new_pledges, opening, departed, campaigns FROM ${base}.history_gains;

CREATE OR REPLACE VIEW ${views}_parts.history_sums
SQL SECURITY DEFINER
AS SELECT
    day, category, sum(moves.new_amount) AS new_amount, sum(moves.new_pledges) AS new_pledges, sum(moves.opening) AS opening,
    sum(moves.departed) AS departed, sum(moves.campaigns) AS campaigns
FROM ${base}.history_moves AS moves
GROUP BY day, category;

CREATE OR REPLACE VIEW ${views}_parts.history_today
SQL SECURITY DEFINER
AS SELECT today FROM ${base}.history_end;

-- The public campaigns with the columns of campaign_by_slug. Private.
CREATE OR REPLACE VIEW ${read}.campaign_rows
SQL SECURITY DEFINER
AS SELECT campaign_id, slug, list_fields, ${detail_columns}, reward_fields
FROM ${read}.campaigns FINAL;

-- The ids for campaign_by_slug, former slugs included. Private.
CREATE OR REPLACE VIEW ${read}.campaign_slugs
SQL SECURITY DEFINER
AS SELECT campaign_id, slug FROM ${read}.campaigns;

-- The watermark of the shard, as the whole watermark reads it. Private.
CREATE OR REPLACE VIEW ${read}.shard_watermark
SQL SECURITY DEFINER
AS SELECT reached FROM ${read}.watermark;

-- The backers and the creators of the shard, each as one state, because a person counts once over all shards. A state has the
-- hash of each of them, so nobody who asks may read it: the servers ask each other as a user of their own. Private.
CREATE OR REPLACE VIEW ${base}.shard_backers
SQL SECURITY DEFINER
AS SELECT getMacro('shard') AS shard, uniqExactState(backer_hash) AS backers
FROM ${ledger}.pledge_ledger FINAL
WHERE counts AND campaign_id IN (SELECT campaign_id FROM ${read}.campaigns FINAL);

CREATE OR REPLACE VIEW ${base}.shard_creators
SQL SECURITY DEFINER
AS SELECT uniqExactState(creator_id) AS creators
FROM ${read}.campaigns FINAL;
