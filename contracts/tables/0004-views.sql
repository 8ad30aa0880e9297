-- The data teams' contract: views with plain names, only public rows, nothing personal, and no need for FINAL. Money
-- is exact (Decimal) and in major units. The query service reads the same views.

CREATE OR REPLACE VIEW ${views}.campaigns
(
    campaign_id             String COMMENT 'Opaque campaign identifier',
    slug                    String COMMENT 'URL-safe name; unique among public campaigns',
    url                     String COMMENT 'Public web address',
    title                   String COMMENT 'Title',
    subtitle                Nullable(String) COMMENT 'Subtitle',
    category                LowCardinality(String) COMMENT 'Main category',
    subcategory             Nullable(String) COMMENT 'Category within the main category',
    location                Nullable(String) COMMENT 'Free text place',
    image_url               Nullable(String) COMMENT 'Web address of the main picture',
    currency                LowCardinality(String) COMMENT 'ISO 4217 code of goal_amount, pledged_amount and the rewards',
    goal_amount             Decimal(38, 4) COMMENT 'Goal, in major units of currency',
    pledged_amount          Decimal(38, 4) COMMENT 'Sum of the pledges that count, in major units of currency',
    pledged_platform_amount Decimal(38, 4) COMMENT 'The same sum in major units of the platform currency',
    percent_funded          Decimal(38, 2) COMMENT '100 * pledged_amount / goal_amount, percent; 0 when the goal is 0',
    backer_count            UInt64 COMMENT 'Distinct backers with a pledge that counts',
    pledge_count            UInt64 COMMENT 'Pledges that count',
    follower_count          UInt64 COMMENT 'Followers',
    status                  LowCardinality(String) COMMENT 'LIVE, FUNDED, FAILED or CANCELLED',
    campaign_type           LowCardinality(String) COMMENT 'For example ALL_OR_NOTHING',
    project_type            LowCardinality(String) COMMENT 'For example COMIC',
    is_staff_pick           Bool COMMENT 'Picked by the platform''s staff',
    has_adult_content       Bool COMMENT 'Marked as adult content',
    uses_ai                 Bool COMMENT 'Declared to use generative AI',
    tags                    Array(String) COMMENT 'Tags',
    launch_date             Nullable(DateTime64(3, 'UTC')) COMMENT 'Launch, UTC',
    end_date                Nullable(DateTime64(3, 'UTC')) COMMENT 'End of the campaign, UTC',
    created_at              DateTime64(3, 'UTC') COMMENT 'Creation of the campaign, UTC',
    creator_name            String COMMENT 'Public name of the creator',
    creator_profile_url     String COMMENT 'Public profile of the creator',
    creator_avatar_url      Nullable(String) COMMENT 'Web address of the creator''s picture',
    description             String COMMENT 'Full description',
    risks                   String COMMENT 'Risks statement',
    rewards                 Array(Tuple(reward_id String, title String, description String, amount Decimal(38, 4), quantity_available Nullable(UInt64), quantity_claimed UInt64, quantity_remaining Nullable(UInt64))) COMMENT 'Reward tiers in the campaign''s order; one row each in the view rewards',
    updated_at              DateTime64(3, 'UTC') COMMENT 'When something of this row last changed, UTC'
)
SQL SECURITY DEFINER
AS SELECT
    campaign_id, slug, url, title, subtitle, category, subcategory, location, image_url, currency, goal_amount,
    pledged_amount, pledged_platform_amount, percent_funded, backer_count, pledge_count, follower_count, status,
    campaign_type, project_type, is_staff_pick, has_adult_content, uses_ai, tags, launch_date, end_date, created_at,
    creator_name, creator_profile_url, creator_avatar_url, description, risks, rewards, updated_at
FROM ${model}.campaigns FINAL;

CREATE OR REPLACE VIEW ${views}.rewards
(
    campaign_id        String COMMENT 'Campaign of the reward',
    reward_id          String COMMENT 'Identifier within the campaign',
    title              String COMMENT 'Title',
    description        String COMMENT 'Description',
    currency           LowCardinality(String) COMMENT 'ISO 4217 code of amount',
    amount             Decimal(38, 4) COMMENT 'Price of the tier, in major units of currency',
    quantity_available Nullable(UInt64) COMMENT 'How many there are; null: unlimited',
    quantity_claimed   UInt64 COMMENT 'Pledges that count and chose this tier',
    quantity_remaining Nullable(UInt64) COMMENT 'How many are left, never below 0; null: unlimited',
    updated_at         DateTime64(3, 'UTC') COMMENT 'When something of the campaign last changed, UTC'
)
SQL SECURITY DEFINER
AS SELECT
    campaign_id, r.reward_id AS reward_id, r.title AS title, r.description AS description, currency,
    r.amount AS amount, r.quantity_available AS quantity_available, r.quantity_claimed AS quantity_claimed,
    r.quantity_remaining AS quantity_remaining, updated_at
FROM ${model}.campaigns FINAL
ARRAY JOIN rewards AS r;

CREATE OR REPLACE VIEW ${views}.categories
(
    category                LowCardinality(String) COMMENT 'Main category',
    project_count           UInt64 COMMENT 'Public campaigns',
    live_count              UInt64 COMMENT 'Of these, LIVE',
    funded_count            UInt64 COMMENT 'Of these, FUNDED',
    pledge_count            UInt64 COMMENT 'Pledges that count',
    pledged_platform_amount Decimal(38, 4) COMMENT 'Their sum, in major units of the platform currency'
)
SQL SECURITY DEFINER
AS SELECT
    c.category AS category,
    count() AS project_count,
    countIf(c.status = 'LIVE') AS live_count,
    countIf(c.status = 'FUNDED') AS funded_count,
    sum(c.pledge_count) AS pledge_count,
    sum(c.pledged_platform_amount) AS pledged_platform_amount
FROM ${model}.campaigns AS c FINAL
GROUP BY category;
