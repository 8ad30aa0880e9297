-- For the query service, which keeps an index of all lists in memory: which campaigns changed when, and also those that
-- left the public, of which the views say nothing. Private; a campaign comes once for every row that is not merged yet.

CREATE OR REPLACE VIEW ${model}.campaign_changes
(
    campaign_id String COMMENT 'Campaign, public or no longer',
    updated_at  DateTime64(3, 'UTC') COMMENT 'When it changed'
)
SQL SECURITY DEFINER
AS SELECT campaign_id, updated_at FROM ${model}.campaigns;
