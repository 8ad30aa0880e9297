-- The portal: the public views, its accounts and notices, the keys of accounts with their contact addresses, and how often
-- each key was used. What its users change are events. It writes two things here: how fresh the data is, and, with the first key,
-- the pepper that the tables depend on. Grant this role to the service's user. That user needs a profile with readonly = 0: with 1 or 2, it
-- could not write.

CREATE ROLE IF NOT EXISTS pledgeview_portal;

GRANT SELECT ON ${views}.* TO pledgeview_portal;
GRANT SELECT ON ${base}.api_keys TO pledgeview_portal;
GRANT SELECT ON ${base}.api_key_ledger TO pledgeview_portal;
GRANT SELECT ON ${base}.account_ledger TO pledgeview_portal;
GRANT SELECT ON ${base}.notice_ledger TO pledgeview_portal;
GRANT SELECT ON ${base}.identity TO pledgeview_portal;
GRANT SELECT ON ${base}.projector_stops TO pledgeview_portal;
GRANT INSERT ON ${base}.identity TO pledgeview_portal;
GRANT SELECT ON ${base}.api_key_usage TO pledgeview_portal;
GRANT SELECT ON ${base}.api_key_requests TO pledgeview_portal;
GRANT SELECT ON ${base}.freshness TO pledgeview_portal;
GRANT INSERT ON ${base}.freshness TO pledgeview_portal;
