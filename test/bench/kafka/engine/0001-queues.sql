-- ClickHouse's consumers of the two topics: Kafka engine tables. They read nothing until a view selects from them.
CREATE TABLE ${model}.campaign_queue
(
    campaign_id       String,
    version           Int64,
    changed_at        DateTime64(3, 'UTC'),
    status            String,
    slug              String,
    url               String,
    title             String,
    subtitle          Nullable(String),
    category          String,
    subcategory       Nullable(String),
    location          Nullable(String),
    image_url         Nullable(String),
    currency          String,
    goal_amount_minor Int64,
    campaign_type     String,
    project_type      String,
    is_staff_pick     Bool,
    has_adult_content Bool,
    uses_ai           Bool,
    tags              Array(String),
    follower_count    Int64,
    launch_date       Nullable(DateTime64(3, 'UTC')),
    end_date          Nullable(DateTime64(3, 'UTC')),
    created_at        DateTime64(3, 'UTC'),
    creator           Tuple(creator_id String, name String, profile_url String, avatar_url Nullable(String)),
    description       String,
    risks             String,
    rewards           Array(Tuple(reward_id String, title String, description String, amount_minor Int64, quantity_available Nullable(Int64)))
)
ENGINE = Kafka
SETTINGS ${engine}, kafka_group_name = '${group}-campaigns', kafka_topic_list = '${prefix}campaigns';

CREATE TABLE ${model}.pledge_queue
(
    pledge_id             String,
    campaign_id           String,
    backer_id             String,
    version               Int64,
    changed_at            DateTime64(3, 'UTC'),
    status                String,
    amount_minor          Int64,
    platform_amount_minor Int64,
    reward_id             Nullable(String)
)
ENGINE = Kafka
SETTINGS ${engine}, kafka_group_name = '${group}-pledges', kafka_topic_list = '${prefix}pledges';
