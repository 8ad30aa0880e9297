-- The read tables. Only the fold writes them.
--
-- One row per public campaign, with its reward tiers in the same row, so a campaign changes in one step. A campaign
-- that is no longer public leaves a row with is_deleted = 1 and no content, which FINAL hides. fold_id = epoch * 2^32
-- + counter only grows, so a late row of a superseded fold worker never wins. updated_at is ClickHouse's clock at the
-- start of the fold's statement. A row is written again only if its content_hash changes; otherwise it keeps its
-- updated_at. Granules and compressed blocks are small because pages and details read scattered rows by id.
--
-- list_fields and reward_fields are what the query service shows, in two columns instead of forty files: a page and a detail read a few
-- scattered rows, and then the time goes into the columns. Both are JSON objects that are computed from the columns beside them when a row
-- is written, so they are never different. A row that was written before a field was added does not have it. The numbers may be quoted,
-- as the settings of the server have it. A page unpacks a granule of 128 for each of its rows: with LZ4 that takes a fifth of the
-- processor time off the statement, and 60 bytes more of disk a campaign.

CREATE TABLE IF NOT EXISTS ${read}.campaigns
(
${campaign_columns},
    creator_id              String,
    content_hash            FixedString(16),
    updated_at              DateTime64(3, 'UTC'),
    fold_id                 UInt64,
    is_deleted              UInt8,
    was_public              UInt8 DEFAULT is_deleted COMMENT 'Of a row with is_deleted: whether it ended what readers could see',
    list_fields             String MATERIALIZED ${list_fields} CODEC(LZ4),
    reward_fields           String MATERIALIZED toJSONString(rewards) CODEC(ZSTD(1)),
    INDEX slug_index slug TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(fold_id, is_deleted)
ORDER BY campaign_id
SETTINGS index_granularity = 128, min_compress_block_size = 4096, fsync_after_insert = 1, fsync_part_directory = 1;

-- Which campaigns changed, and when. The query service keeps its list index current with it. It also has campaigns
-- that are no longer public, which the views do not show. Private. A campaign appears once for each row that is not
-- merged yet.

CREATE OR REPLACE VIEW ${read}.campaign_changes
(
    campaign_id String COMMENT 'Campaign, public or no longer',
    updated_at  DateTime64(3, 'UTC') COMMENT 'When it changed'
)
SQL SECURITY DEFINER
AS SELECT campaign_id, updated_at FROM ${read}.campaigns;

-- The public campaigns for pages and details, by id. Private.
--
-- The query service mostly knows which campaign has a slug, from its list index. Then one row by primary key is enough, at
-- half of the cost of the search by slug. The rows are those of `campaign_by_slug`. The list index reads the columns that lists are
-- sorted and filtered by, and the statistics sum them. The views of analysts cannot be read by key (../views/0001-views.sql).

CREATE OR REPLACE VIEW ${read}.campaign_pages
(
    campaign_id             String COMMENT 'Campaign',
    list_fields             String COMMENT 'JSON object with the fields of a list',
    ${detail_definitions},
    reward_fields           String COMMENT 'JSON array of the reward tiers',
    status                  LowCardinality(String) COMMENT 'LIVE, FUNDED, FAILED or CANCELLED',
    category                LowCardinality(String) COMMENT 'Main category',
    slug                    String COMMENT 'URL-safe name',
    launch_date             Nullable(DateTime64(3, 'UTC')) COMMENT 'Launch, UTC',
    end_date                Nullable(DateTime64(3, 'UTC')) COMMENT 'End of the campaign, UTC',
    pledged_platform_amount Decimal(38, 4) COMMENT 'Sum of the pledges that count, in major units of the platform currency',
    backer_count            UInt64 COMMENT 'Distinct backers with a pledge that counts',
    pledge_count            UInt64 COMMENT 'Number of pledges that count',
    updated_at              DateTime64(3, 'UTC') COMMENT 'When something of this row last changed, UTC'
)
SQL SECURITY DEFINER
AS SELECT
    campaign_id, list_fields, ${detail_columns}, reward_fields, status, category, slug, launch_date, end_date,
    pledged_platform_amount, backer_count, pledge_count, updated_at
FROM ${read}.campaigns FINAL;

-- One public campaign with its texts and tiers, by slug. Private.
--
-- The ids are found first, in two columns and without FINAL, which lets the slug index skip nearly everything. That may find
-- too much, former slugs and campaigns that are no longer public, but never too little: the row that is shown has the slug
-- too. Then their rows are read by id, and only one that has the slug now is returned. Two campaigns can have the same slug
-- between two events: then the smallest id is shown.
CREATE OR REPLACE VIEW ${read}.campaign_by_slug
SQL SECURITY DEFINER
AS SELECT list_fields, ${detail_columns}, reward_fields
FROM ${read}.campaigns FINAL
WHERE slug = {slug:String} AND campaign_id IN (SELECT campaign_id FROM ${read}.campaigns WHERE slug = {slug:String})
ORDER BY campaign_id
LIMIT 1;
