-- The read tables. Only the fold writes them.
--
-- One row per public campaign, with its reward tiers in the same row, so a campaign changes in one step. A campaign
-- that is no longer public leaves a row with is_deleted = 1 and no content, which FINAL hides. fold_id = epoch * 2^32
-- + counter only grows, so a late row of a superseded fold worker never wins. updated_at is ClickHouse's clock at the
-- start of the fold's statement. A row is written again only if its content_hash changes; otherwise it keeps its
-- updated_at. Granules and compressed blocks are small because pages and details read scattered rows by id.

CREATE TABLE IF NOT EXISTS ${model}.campaigns
(
    campaign_id             String,
    slug                    String,
    url                     String,
    title                   String,
    subtitle                Nullable(String),
    category                LowCardinality(String),
    subcategory             Nullable(String),
    location                Nullable(String),
    image_url               Nullable(String),
    currency                LowCardinality(String),
    goal_amount             Decimal(38, 4),
    pledged_amount          Decimal(38, 4),
    pledged_platform_amount Decimal(38, 4),
    percent_funded          Decimal(38, 2),
    backer_count            UInt64,
    pledge_count            UInt64,
    follower_count          UInt64,
    status                  LowCardinality(String),
    campaign_type           LowCardinality(String),
    project_type            LowCardinality(String),
    is_staff_pick           Bool,
    has_adult_content       Bool,
    uses_ai                 Bool,
    tags                    Array(String),
    launch_date             Nullable(DateTime64(3, 'UTC')),
    end_date                Nullable(DateTime64(3, 'UTC')),
    created_at              DateTime64(3, 'UTC'),
    creator_id              String,
    creator_name            String,
    creator_profile_url     String,
    creator_avatar_url      Nullable(String),
    description             String,
    risks                   String,
    rewards                 Array(Tuple(
        reward_id          String,
        title              String,
        description        String,
        amount             Decimal(38, 4),
        quantity_available Nullable(UInt64),
        quantity_claimed   UInt64,
        quantity_remaining Nullable(UInt64))),
    content_hash            FixedString(16),
    updated_at              DateTime64(3, 'UTC'),
    fold_id                 UInt64,
    is_deleted              UInt8,
    INDEX slug_index slug TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(fold_id, is_deleted)
ORDER BY campaign_id
SETTINGS index_granularity = 128, min_compress_block_size = 4096, fsync_after_insert = 1, fsync_part_directory = 1, min_age_to_force_merge_seconds = 3600;

-- The columns of a key that authentication needs, and no other columns. The three oldest unrevoked keys of an account are active.
CREATE TABLE IF NOT EXISTS ${model}.api_keys
(
    api_key     String,
    account_id  String,
    secret_hash String COMMENT 'Lower-case hex of HMAC-SHA-256(pepper, secret)',
    scopes      Array(String),
    is_active   Bool,
    updated_at  DateTime64(3, 'UTC'),
    fold_id     UInt64,
    is_deleted  UInt8
)
ENGINE = ReplacingMergeTree(fold_id, is_deleted)
ORDER BY api_key
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_age_to_force_merge_seconds = 3600;
