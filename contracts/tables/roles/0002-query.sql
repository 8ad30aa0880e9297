-- The query service: the public views, and the hashes that the credentials of a request are compared with. It inserts how
-- often each key is used, and its latest requests. Grant this role to the service's user. That user needs a profile with readonly = 0: with 1, no
-- setting can be sent, and with 2 it cannot insert.

CREATE ROLE IF NOT EXISTS pledgeview_query;

GRANT SELECT ON ${views}.* TO pledgeview_query;
GRANT SELECT ON ${base}_read_*.* TO pledgeview_query;
GRANT SELECT ON ${base}.generation_log TO pledgeview_query;
GRANT SELECT ON ${base}.api_keys TO pledgeview_query;
GRANT SELECT ON ${base}.revoked_keys TO pledgeview_query;
GRANT SELECT ON ${base}.identity TO pledgeview_query;
GRANT SELECT ON ${base}.projector_stops TO pledgeview_query;
GRANT INSERT ON ${base}.api_key_usage TO pledgeview_query;
GRANT INSERT ON ${base}.api_key_requests TO pledgeview_query;
