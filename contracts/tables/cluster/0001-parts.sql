-- What each shard adds to the views of a cluster that need more than rows (services/shared/tables/cluster-views.ts).
--
-- Each of these views reads its own shard only. Whoever reads a view of the whole cluster may read them too, because ClickHouse
-- sends the reader's name to the other shards and checks the reader's rights there. So they show no more than the public views,
-- with two exceptions, `creators` and `backers`. Both are states of hashes, because a person counts once over all shards.

-- The sums of the shard, and its creators as a state. The state has an unkeyed hash of the id of each creator with a public
-- campaign. Who knows or guesses an id can see whether it is among them.
CREATE OR REPLACE VIEW ${views}_parts.platform_sums
SQL SECURITY DEFINER
AS SELECT
    sum(pledged_platform_amount) AS total_raised,
    sum(pledge_count) AS total_pledges,
    uniqExactState(creator_id) AS creators,
    count() AS projects_total,
    countIf(status = 'LIVE') AS projects_live,
    countIf(status = 'FUNDED') AS projects_funded,
    countIf(status = 'FAILED') AS projects_failed,
    countIf(status = 'CANCELLED') AS projects_cancelled
FROM ${model}.campaigns FINAL;

-- The backers of the shard as one state, of all campaigns together. The state has the keyed hash of each backer, which no other
-- view shows. No id can be found from it without the key. But who reads it again and again, beside `backer_count`, can see to
-- which campaign a new hash belongs, and whether the same hash comes to another shard.
CREATE OR REPLACE VIEW ${views}_parts.backers
SQL SECURITY DEFINER
AS SELECT uniqExactState(backer_hash) AS backers
FROM ${model}.pledge_ledger FINAL
WHERE counts AND campaign_id IN (SELECT campaign_id FROM ${model}.campaigns FINAL);

-- The history of the shard by day and category, as the public views sum it.
CREATE OR REPLACE VIEW ${views}_parts.history_sums
SQL SECURITY DEFINER
AS SELECT
    day, category, is_between, sum(new_amount) AS new_amount, sum(new_pledges) AS new_pledges, sum(opening) AS opening,
    sum(departed) AS departed, sum(campaigns) AS campaigns
FROM ${model}.history_moves
GROUP BY day, category, is_between;

CREATE OR REPLACE VIEW ${views}_parts.history_today
SQL SECURITY DEFINER
AS SELECT today FROM ${model}.history_end;

-- The public campaigns with the columns of campaign_by_slug. Private.
CREATE OR REPLACE VIEW ${model}.campaign_rows
SQL SECURITY DEFINER
AS SELECT campaign_id, slug, list_fields, description, risks, reward_fields
FROM ${model}.campaigns FINAL;

-- The ids for campaign_by_slug, former slugs included. Private.
CREATE OR REPLACE VIEW ${model}.campaign_slugs
SQL SECURITY DEFINER
AS SELECT campaign_id, slug FROM ${model}.campaigns;

-- The watermark of the shard, as the whole watermark reads it. Private.
CREATE OR REPLACE VIEW ${model}.shard_watermark
SQL SECURITY DEFINER
AS SELECT reached FROM ${model}.watermark;
