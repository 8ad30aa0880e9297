-- Lets the imagined platform live through the states of change events, so that its tables end as the events say. A platform's table has
-- only the latest state of a row, so late and stale versions are left out here.

CREATE TABLE event (line bigint GENERATED ALWAYS AS IDENTITY, body jsonb);
CREATE TABLE state (
  line bigint, type text, campaign_id text, pledge_id text, version bigint, data jsonb
);

CREATE FUNCTION read_events() RETURNS void LANGUAGE sql AS $$
  INSERT INTO state
  SELECT line, body->>'type', body->'data'->>'campaign_id', body->'data'->>'pledge_id', (body->'data'->>'version')::bigint, body->'data'
  FROM event;
  CREATE INDEX ON state (type, campaign_id, pledge_id, version);
  ANALYZE state
$$;

CREATE FUNCTION major(minor jsonb, currency text) RETURNS numeric LANGUAGE sql AS $$
  SELECT minor::numeric / CASE currency WHEN 'JPY' THEN 1 ELSE 100 END
$$;

-- Brings the rows that lines `above` to `upto` name to their newest state up to there. A pledge waits for its campaign.
CREATE FUNCTION apply_events(above bigint, upto bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  CREATE TEMP TABLE newest ON COMMIT DROP AS
  SELECT DISTINCT ON (type, campaign_id, pledge_id) type, campaign_id, pledge_id, data
  FROM state
  WHERE line <= upto
    AND campaign_id IN (SELECT campaign_id FROM state WHERE line > above AND line <= upto)
    AND (
      type = 'campaign'
      OR (campaign_id, pledge_id) IN (SELECT campaign_id, pledge_id FROM state WHERE line > above AND line <= upto)
      OR campaign_id NOT IN (SELECT campaign_id FROM campaign)
    )
  ORDER BY type, campaign_id, pledge_id, version DESC;

  INSERT INTO creator
  SELECT DISTINCT ON (data->'creator'->>'creator_id')
    data->'creator'->>'creator_id', data->'creator'->>'name', data->'creator'->>'profile_url', data->'creator'->>'avatar_url'
  FROM newest WHERE type = 'campaign'
  ON CONFLICT DO NOTHING;

  INSERT INTO campaign
  SELECT
    campaign_id, data->'creator'->>'creator_id', data->>'status', data->>'slug', data->>'title', data->>'subtitle',
    data->>'category', data->>'subcategory', data->>'location', data->>'image_url', data->>'currency',
    major(data->'goal_amount_minor', data->>'currency'), data->>'campaign_type', data->>'project_type',
    (data->>'is_staff_pick')::boolean, (data->>'has_adult_content')::boolean, (data->>'uses_ai')::boolean,
    ARRAY(SELECT jsonb_array_elements_text(data->'tags')), (data->>'follower_count')::integer,
    (data->>'launch_date')::timestamptz, (data->>'end_date')::timestamptz, (data->>'created_at')::timestamptz,
    data->>'description', data->>'risks'
  FROM newest WHERE type = 'campaign'
  ON CONFLICT (campaign_id) DO UPDATE
  SET status = excluded.status, slug = excluded.slug, title = excluded.title, goal = excluded.goal, followers = excluded.followers,
    launched_at = excluded.launched_at, ends_at = excluded.ends_at;

  INSERT INTO tier
  SELECT
    campaign_id, reward->>'reward_id', reward->>'title', reward->>'description',
    major(reward->'amount_minor', data->>'currency'), (reward->>'quantity_available')::integer
  FROM newest, jsonb_array_elements(data->'rewards') AS reward WHERE type = 'campaign'
  ON CONFLICT (campaign_id, tier_id) DO NOTHING;

  INSERT INTO pledge
  SELECT
    pledge_id, campaign_id, data->>'backer_id', data->>'status', major(data->'amount_minor', currency),
    major(data->'platform_amount_minor', 'EUR'), data->>'reward_id'
  FROM newest JOIN campaign USING (campaign_id) WHERE type = 'pledge'
  ON CONFLICT (campaign_id, pledge_id) DO UPDATE
  SET status = excluded.status, amount = excluded.amount, platform_amount = excluded.platform_amount, tier_id = excluded.tier_id;
END
$$;
