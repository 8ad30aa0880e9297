-- What the query service shows of a campaign, in two columns instead of forty files.
--
-- A page and a detail read a few scattered rows. Then the time goes into the columns, and not into the rows: each column is
-- a file or more that has to be opened and unpacked. So the fields of a list and the reward tiers are kept once more, each as
-- one JSON array. Both are computed from the columns beside them when a row is written, so they are never different. Rows of
-- an earlier version have them too: ClickHouse computes them while it reads, until their part is merged.
--
-- The order of the fields is that of `listColumns` and of the columns of `rewards` (campaign-columns.ts). The numbers may be
-- quoted, as the settings of the server have it. A later change of the fields needs other columns, because merges keep what
-- was written.

ALTER TABLE ${model}.campaigns
    ADD COLUMN IF NOT EXISTS list_fields String MATERIALIZED toJSONString((
        campaign_id, slug, url, title, subtitle, category, subcategory, location, image_url, currency, goal_amount,
        pledged_amount, percent_funded, backer_count, follower_count, status, campaign_type, project_type, is_staff_pick,
        has_adult_content, uses_ai, tags, launch_date, end_date, created_at, creator_name, creator_profile_url,
        creator_avatar_url, updated_at
    )) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS reward_fields String MATERIALIZED toJSONString(arrayMap(r -> (
        r.1, r.2, r.3, r.4, r.5, r.6, r.7
    ), rewards)) CODEC(ZSTD(1));

-- The public campaigns for pages, by id. Private.
CREATE OR REPLACE VIEW ${model}.campaign_pages
(
    campaign_id String COMMENT 'Campaign',
    list_fields String COMMENT 'JSON array of the fields of a list'
)
SQL SECURITY DEFINER
AS SELECT campaign_id, list_fields FROM ${model}.campaigns FINAL;

-- One public campaign with its texts and tiers, by slug. Private.
--
-- The ids are found first, in two columns and without FINAL, which lets the slug index skip nearly everything. That may find
-- too much, former slugs and campaigns that are no longer public, but never too little: the row that is shown has the slug
-- too. Then their rows are read by id, and only one that has the slug now is returned. Two campaigns can have the same slug
-- between two events: then the smallest id is shown.
CREATE OR REPLACE VIEW ${model}.campaign_by_slug
SQL SECURITY DEFINER
AS SELECT list_fields, description, risks, reward_fields
FROM ${model}.campaigns FINAL
WHERE slug = {slug:String} AND campaign_id IN (SELECT campaign_id FROM ${model}.campaigns WHERE slug = {slug:String})
ORDER BY campaign_id
LIMIT 1;
