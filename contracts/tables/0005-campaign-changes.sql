-- Which campaigns changed, and when. The query service keeps its list index current with it. It also has campaigns
-- that are no longer public, which the views do not show. Private. A campaign appears once for each row that is not
-- merged yet.

CREATE OR REPLACE VIEW ${model}.campaign_changes
(
    campaign_id String COMMENT 'Campaign, public or no longer',
    updated_at  DateTime64(3, 'UTC') COMMENT 'When it changed'
)
SQL SECURITY DEFINER
AS SELECT campaign_id, updated_at FROM ${model}.campaigns;
