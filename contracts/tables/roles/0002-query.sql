-- The query service: what anybody may see, and the hashes that a request's credentials are checked against.
-- Grant it to the service's user. That user needs a profile with readonly = 0 or 2: with 1 no setting can be sent.

CREATE ROLE IF NOT EXISTS pledgeview_query;

GRANT SELECT ON ${views}.* TO pledgeview_query;
GRANT SELECT ON ${model}.api_keys TO pledgeview_query;
GRANT SELECT ON ${model}.campaign_changes TO pledgeview_query;
GRANT SELECT ON ${model}.identity TO pledgeview_query;
