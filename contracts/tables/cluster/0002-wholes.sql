-- The views of a whole cluster that are no plain union of the shards' rows. Their columns and comments are those of the view of
-- the same name on one server; here is only what they read. `all_X` has the rows of the view X of every shard.
--
-- They read as the person who asks. That person may read the same on every shard.

CREATE OR REPLACE VIEW ${views}.categories
AS SELECT
    category,
    sum(shards.project_count) AS project_count,
    sum(shards.live_count) AS live_count,
    sum(shards.funded_count) AS funded_count,
    sum(shards.pledge_count) AS pledge_count,
    sum(shards.pledged_platform_amount) AS pledged_platform_amount,
    toFloat64(sum(shards.pledged_platform_amount)) AS pledged_platform
FROM ${views}_parts.all_categories AS shards
GROUP BY category;

-- The people are counted first, over the other cluster of 0003-people.sql. So a pledge that is folded meanwhile may be in the sum
-- without its backer. (The query service reads its sums before this view.) If the other cluster does not have the same shards, this
-- fails: it would count fewer people than there are.
CREATE OR REPLACE VIEW ${views}.platform_totals
AS WITH (SELECT (total_backers, shards) FROM ${views}_parts.backers) AS counted
SELECT
    sum(sums.total_raised) AS total_raised,
    toFloat64(sum(sums.total_raised)) AS raised,
    sum(sums.total_pledges) AS total_pledges,
    least(counted.1, total_pledges) AS total_backers,
    least((SELECT total_creators FROM ${views}_parts.creators), projects_total) AS total_creators,
    sum(sums.projects_total) AS projects_total,
    sum(sums.projects_live) AS projects_live,
    sum(sums.projects_funded) AS projects_funded,
    sum(sums.projects_failed) AS projects_failed,
    sum(sums.projects_cancelled) AS projects_cancelled
FROM ${views}_parts.all_platform_sums AS sums
HAVING throwIf(
    arraySort(groupUniqArray(sums.shard)) != counted.2,
    'the clusters that sum and that count people (with _counts) have different shards in remote_servers'
) = 0;

-- The version and the currency are on one shard. The times are those of the shard that is the furthest behind.
CREATE OR REPLACE VIEW ${views}.about
AS SELECT
    max(shards.version) AS version,
    max(ifNull(shards.platform_currency, '')) AS platform_currency,
    min(shards.as_of) AS as_of,
    dateDiff('millisecond', as_of, now64(3, 'UTC')) / 1000 AS freshness_seconds,
    min(shards.history_from) AS history_from,
    max(shards.history_kept_from) AS history_kept_from,
    argMax(shards.history_note, ifNull(shards.history_kept_from, toDate(0))) AS history_note,
    sum(shards.campaigns) AS campaigns,
    min(shards.last_event_at) AS last_event_at,
    min(shards.last_fold_at) AS last_fold_at
FROM ${views}_parts.all_about AS shards;

CREATE OR REPLACE VIEW ${read}_all.watermark
AS SELECT min(shards.reached) AS reached
FROM ${read}_all.shard_watermark AS shards
HAVING count() > 0;

-- A slug is looked up on each shard by itself: the subquery reads the shard's own rows.
CREATE OR REPLACE VIEW ${read}_all.campaign_by_slug
AS SELECT list_fields, ${detail_columns}, reward_fields
FROM ${read}_all.campaign_rows
WHERE slug = {slug:String} AND campaign_id IN (SELECT campaign_id FROM ${read}.campaign_slugs WHERE slug = {slug:String})
ORDER BY campaign_id
LIMIT 1;
