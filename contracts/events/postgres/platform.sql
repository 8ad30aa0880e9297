-- The tables of an imagined platform, as they were before Pledgeview: replace them with yours, and change state.sql, which reads them.
-- Money is in major units, as platforms usually have it.

CREATE TABLE creator (
  creator_id text PRIMARY KEY,
  name text NOT NULL,
  profile_url text NOT NULL,
  avatar_url text
);

CREATE TABLE campaign (
  campaign_id text PRIMARY KEY,
  creator_id text NOT NULL REFERENCES creator,
  -- One of the words of ../campaign.avsc.json. If yours are others, map them in state.sql.
  status text NOT NULL,
  slug text NOT NULL,
  title text NOT NULL,
  subtitle text,
  category text NOT NULL,
  subcategory text,
  location text,
  image_url text,
  currency char(3) NOT NULL,
  goal numeric(18, 3) NOT NULL,
  campaign_type text NOT NULL DEFAULT 'ALL_OR_NOTHING',
  project_type text NOT NULL,
  is_staff_pick boolean NOT NULL DEFAULT false,
  has_adult_content boolean NOT NULL DEFAULT false,
  uses_ai boolean NOT NULL DEFAULT false,
  tags text[] NOT NULL DEFAULT '{}',
  followers integer NOT NULL DEFAULT 0,
  launched_at timestamptz,
  ends_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  description text NOT NULL DEFAULT '',
  risks text NOT NULL DEFAULT ''
);

CREATE TABLE tier (
  campaign_id text NOT NULL REFERENCES campaign ON DELETE CASCADE,
  tier_id text NOT NULL,
  title text NOT NULL,
  description text NOT NULL DEFAULT '',
  price numeric(18, 3) NOT NULL,
  -- Null: unlimited.
  quantity integer,
  PRIMARY KEY (campaign_id, tier_id)
);

CREATE TABLE pledge (
  pledge_id text NOT NULL,
  campaign_id text NOT NULL REFERENCES campaign ON DELETE CASCADE,
  backer_id text NOT NULL,
  status text NOT NULL,
  -- In the campaign's currency, and in the platform's own.
  amount numeric(18, 3) NOT NULL,
  platform_amount numeric(18, 3) NOT NULL,
  tier_id text,
  PRIMARY KEY (campaign_id, pledge_id)
);

CREATE INDEX ON campaign (creator_id);
