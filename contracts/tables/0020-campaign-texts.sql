-- The texts and tiers of a campaign beside its list fields, so that a detail can be read by id.
--
-- The query service mostly knows which campaign has a slug, from its list index. Then one row by primary key is enough, at
-- half of the cost of the search by slug. The rows are those of `campaign_by_slug`: nobody can read more than before.

CREATE OR REPLACE VIEW ${model}.campaign_pages
(
    campaign_id   String COMMENT 'Campaign',
    list_fields   String COMMENT 'JSON array of the fields of a list',
    description   String COMMENT 'Full description',
    risks         String COMMENT 'Risks statement',
    reward_fields String COMMENT 'JSON array of the fields of the reward tiers'
)
SQL SECURITY DEFINER
AS SELECT campaign_id, list_fields, description, risks, reward_fields FROM ${model}.campaigns FINAL;
