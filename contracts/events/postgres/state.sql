-- From your tables to events: the part to write anew for your platform. Run it after outbox.sql, and again after each change of it.
--
-- A change of a row publishes the whole state of its entity. The trigger runs while the row is locked, and reads what is committed
-- or its own transaction's: so for one entity the versions follow the changes, whatever transactions do at the same time.
-- The triggers have the rights of their owner, so the roles of your platform need no new ones. They search Postgres's own functions
-- alone, so write every table, and every function of an extension, with its schema.
\set ON_ERROR_STOP on
BEGIN;

CREATE OR REPLACE FUNCTION pledgeview.campaign_state(of_campaign text) RETURNS jsonb STABLE LANGUAGE sql SET search_path = pg_catalog AS $$
  SELECT jsonb_build_object(
    'campaign_id', c.campaign_id,
    'status', c.status,
    'slug', c.slug,
    'url', 'https://platform.example/projects/' || c.slug,
    'title', c.title,
    'subtitle', c.subtitle,
    'category', c.category,
    'subcategory', c.subcategory,
    'location', c.location,
    'image_url', c.image_url,
    'currency', c.currency,
    'goal_amount_minor', pledgeview.minor(c.goal, c.currency),
    'campaign_type', c.campaign_type,
    'project_type', c.project_type,
    'is_staff_pick', c.is_staff_pick,
    'has_adult_content', c.has_adult_content,
    'uses_ai', c.uses_ai,
    'tags', to_jsonb(c.tags),
    'follower_count', c.followers,
    'launch_date', pledgeview.iso(c.launched_at),
    'end_date', pledgeview.iso(c.ends_at),
    'created_at', pledgeview.iso(c.created_at),
    'creator', (
      SELECT jsonb_build_object('creator_id', creator_id, 'name', name, 'profile_url', profile_url, 'avatar_url', avatar_url)
      FROM public.creator WHERE creator_id = c.creator_id
    ),
    'description', c.description,
    'risks', c.risks,
    'rewards', COALESCE((
      SELECT jsonb_agg(jsonb_build_object(
        'reward_id', t.tier_id,
        'title', t.title,
        'description', t.description,
        'amount_minor', pledgeview.minor(t.price, c.currency),
        'quantity_available', t.quantity
      ) ORDER BY t.price, t.tier_id)
      FROM public.tier AS t WHERE t.campaign_id = c.campaign_id
    ), '[]')
  )
  FROM public.campaign AS c WHERE c.campaign_id = of_campaign
$$;

-- 'EUR' is the platform's own currency, as PLEDGEVIEW_PLATFORM_CURRENCY.
CREATE OR REPLACE FUNCTION pledgeview.pledge_state(p public.pledge) RETURNS jsonb STABLE LANGUAGE sql SET search_path = pg_catalog AS $$
  SELECT jsonb_build_object(
    'pledge_id', p.pledge_id,
    'campaign_id', p.campaign_id,
    'backer_id', p.backer_id,
    'status', p.status,
    'amount_minor', pledgeview.minor(p.amount, (SELECT currency FROM public.campaign WHERE campaign_id = p.campaign_id)),
    'platform_amount_minor', pledgeview.minor(p.platform_amount, 'EUR'),
    'reward_id', p.tier_id
  )
$$;

-- A row whose key changes is deleted under its old one.
CREATE OR REPLACE FUNCTION pledgeview.on_campaign() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.campaign_id IS DISTINCT FROM NEW.campaign_id THEN
    PERFORM pledgeview.publish_deletion('campaigns', OLD.campaign_id);
  END IF;
  IF TG_OP = 'INSERT' OR OLD.creator_id IS DISTINCT FROM NEW.creator_id THEN
    -- Until this is committed, on_creator does not find the campaign. So a change of its creator has to end before, or wait.
    PERFORM 1 FROM public.creator WHERE creator_id = NEW.creator_id FOR SHARE;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    PERFORM pledgeview.publish('campaigns', NEW.campaign_id, pledgeview.campaign_state(NEW.campaign_id));
  END IF;
  RETURN NULL;
END
$$;

-- A tier or a creator is a part of a campaign's state. An update of the campaign's row takes its lock, and publishes it. After the
-- campaign itself was deleted there is no row to update.
CREATE OR REPLACE FUNCTION pledgeview.on_tier() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
  UPDATE public.campaign SET campaign_id = campaign_id WHERE campaign_id IN (OLD.campaign_id, NEW.campaign_id);
  RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION pledgeview.on_creator() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
  UPDATE public.campaign SET campaign_id = campaign_id WHERE creator_id = NEW.creator_id;
  RETURN NULL;
END
$$;

-- It reads the row again: a trigger of the platform that ran before may have changed it, and that state is published already. NEW, with a
-- higher version, would bring the older one back.
CREATE OR REPLACE FUNCTION pledgeview.on_pledge() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
  p public.pledge;
BEGIN
  IF TG_OP <> 'INSERT' AND (OLD.campaign_id, OLD.pledge_id) IS DISTINCT FROM (NEW.campaign_id, NEW.pledge_id) THEN
    PERFORM pledgeview.publish_deletion('pledges', OLD.campaign_id || '/' || OLD.pledge_id);
  END IF;
  IF TG_OP <> 'DELETE' THEN
    SELECT * INTO p FROM public.pledge WHERE campaign_id = NEW.campaign_id AND pledge_id = NEW.pledge_id;
    IF FOUND THEN
      PERFORM pledgeview.publish('pledges', p.campaign_id || '/' || p.pledge_id, pledgeview.pledge_state(p));
    END IF;
  END IF;
  RETURN NULL;
END
$$;

-- A TRUNCATE runs no trigger for its rows.
CREATE OR REPLACE FUNCTION pledgeview.on_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE 'pledgeview: a TRUNCATE of % would publish no deletions. DELETE its rows', TG_RELID::regclass;
END
$$;

CREATE OR REPLACE TRIGGER pledgeview AFTER INSERT OR UPDATE OR DELETE ON public.campaign
FOR EACH ROW EXECUTE FUNCTION pledgeview.on_campaign();
CREATE OR REPLACE TRIGGER pledgeview AFTER INSERT OR UPDATE OR DELETE ON public.tier FOR EACH ROW EXECUTE FUNCTION pledgeview.on_tier();
CREATE OR REPLACE TRIGGER pledgeview AFTER UPDATE ON public.creator FOR EACH ROW EXECUTE FUNCTION pledgeview.on_creator();
CREATE OR REPLACE TRIGGER pledgeview AFTER INSERT OR UPDATE OR DELETE ON public.pledge FOR EACH ROW EXECUTE FUNCTION pledgeview.on_pledge();
CREATE OR REPLACE TRIGGER pledgeview_truncate BEFORE TRUNCATE ON public.campaign EXECUTE FUNCTION pledgeview.on_truncate();
CREATE OR REPLACE TRIGGER pledgeview_truncate BEFORE TRUNCATE ON public.tier EXECUTE FUNCTION pledgeview.on_truncate();
CREATE OR REPLACE TRIGGER pledgeview_truncate BEFORE TRUNCATE ON public.pledge EXECUTE FUNCTION pledgeview.on_truncate();

-- The state of each row, as a line of NDJSON: to check them all without Kafka, by `pledgeview events append`.
CREATE OR REPLACE VIEW pledgeview.lines AS
SELECT jsonb_build_object('type', 'campaign', 'data', pledgeview.stamped(pledgeview.campaign_state(campaign_id))) AS line
FROM public.campaign
UNION ALL
SELECT jsonb_build_object('type', 'pledge', 'data', pledgeview.stamped(pledgeview.pledge_state(p))) FROM public.pledge AS p;

-- Publishes every row that was there before the triggers, a thousand a transaction, while the platform goes on. A row is locked
-- while its state is read, so no later change can get a lower version. It may be called again at any time.
CREATE OR REPLACE PROCEDURE pledgeview.backfill() LANGUAGE plpgsql AS $$
DECLARE
  after_campaign text := '';
  after_pledge text := '';
  c public.campaign;
  p public.pledge;
  found_rows integer;
BEGIN
  LOOP
    found_rows := 0;
    FOR c IN SELECT * FROM public.campaign WHERE campaign_id > after_campaign ORDER BY campaign_id LIMIT 1000 FOR NO KEY UPDATE LOOP
      PERFORM pledgeview.publish('campaigns', c.campaign_id, pledgeview.campaign_state(c.campaign_id));
      after_campaign := c.campaign_id;
      found_rows := found_rows + 1;
    END LOOP;
    COMMIT;
    EXIT WHEN found_rows = 0;
  END LOOP;
  after_campaign := '';
  LOOP
    found_rows := 0;
    FOR p IN
      SELECT * FROM public.pledge WHERE (campaign_id, pledge_id) > (after_campaign, after_pledge)
      ORDER BY campaign_id, pledge_id LIMIT 1000 FOR NO KEY UPDATE
    LOOP
      PERFORM pledgeview.publish('pledges', p.campaign_id || '/' || p.pledge_id, pledgeview.pledge_state(p));
      after_campaign := p.campaign_id;
      after_pledge := p.pledge_id;
      found_rows := found_rows + 1;
    END LOOP;
    COMMIT;
    EXIT WHEN found_rows = 0;
  END LOOP;
END
$$;

COMMIT;
