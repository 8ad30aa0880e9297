-- The rows that a projector would write to the ledger. The backer hash is SHA-256 over key and id, cut to 64 bits, because
-- ClickHouse has no SHA3-256.
CREATE MATERIALIZED VIEW ${model}.pledge_view TO ${ledger}.pledge_ledger AS
SELECT
    campaign_id,
    pledge_id,
    toUInt64(queue.version) AS version,
    queue.status IN ('ACTIVE', 'COLLECTED') AS counts,
    if(counts, reinterpretAsUInt64(substring(SHA256(concat('${key}', backer_id)), 1, 8)), 0) AS backer_hash,
    if(counts, queue.amount_minor, 0) AS amount_minor,
    if(counts, queue.platform_amount_minor, 0) AS platform_amount_minor,
    if(counts, ifNull(queue.reward_id, ''), '') AS reward_id
FROM ${model}.pledge_queue AS queue;

CREATE MATERIALIZED VIEW ${model}.campaign_view TO ${ledger}.campaign_ledger AS
SELECT
    campaign_id,
    toUInt64(queue.version) AS version,
    queue.status IN ('LIVE', 'FUNDED', 'FAILED', 'CANCELLED') AS is_public,
    if(is_public, queue.status, '') AS status,
    if(is_public, queue.slug, '') AS slug,
    if(is_public, queue.url, '') AS url,
    if(is_public, queue.title, '') AS title,
    if(is_public, queue.subtitle, NULL) AS subtitle,
    if(is_public, queue.category, '') AS category,
    if(is_public, queue.subcategory, NULL) AS subcategory,
    if(is_public, queue.location, NULL) AS location,
    if(is_public, queue.image_url, NULL) AS image_url,
    if(is_public, queue.currency, '') AS currency,
    if(is_public, transform(queue.currency, ['JPY', 'KRW', 'KWD'], [0, 0, 3], 2), 0) AS currency_digits,
    if(is_public, queue.goal_amount_minor, 0) AS goal_amount_minor,
    if(is_public, queue.campaign_type, '') AS campaign_type,
    if(is_public, queue.project_type, '') AS project_type,
    is_public AND queue.is_staff_pick AS is_staff_pick,
    is_public AND queue.has_adult_content AS has_adult_content,
    is_public AND queue.uses_ai AS uses_ai,
    if(is_public, queue.tags, []) AS tags,
    if(is_public, queue.follower_count, 0) AS follower_count,
    if(is_public, queue.launch_date, NULL) AS launch_date,
    if(is_public, queue.end_date, NULL) AS end_date,
    if(is_public, queue.created_at, toDateTime64(0, 3, 'UTC')) AS created_at,
    if(is_public, queue.creator.creator_id, '') AS creator_id,
    if(is_public, queue.creator.name, '') AS creator_name,
    if(is_public, queue.creator.profile_url, '') AS creator_profile_url,
    if(is_public, queue.creator.avatar_url, NULL) AS creator_avatar_url,
    if(is_public, queue.description, '') AS description,
    if(is_public, queue.risks, '') AS risks,
    if(is_public, queue.rewards, []) AS rewards
FROM ${model}.campaign_queue AS queue;
