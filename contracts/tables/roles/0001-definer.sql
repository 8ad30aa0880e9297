-- The views read as this user. It may read only what they need, and it cannot log in (it has no host, and no password
-- has this hash). Without it the views would read as the user that ran the migrations, with all rights.

CREATE USER IF NOT EXISTS pledgeview_definer
IDENTIFIED WITH sha256_hash BY '0000000000000000000000000000000000000000000000000000000000000000'
HOST NONE;

-- A view passes the settings of a query on to the tables that it reads. These two are conditions on those tables, private
-- columns included, so nobody may set them there. This replaces all other settings of this user.
ALTER USER pledgeview_definer SETTINGS additional_table_filters = '{}' CONST, parallel_replicas_custom_key = '' CONST;

GRANT SELECT ON ${model}.campaigns TO pledgeview_definer;
GRANT SELECT ON ${model}.pledge_ledger TO pledgeview_definer;
GRANT SELECT ON ${model}.stamp_floor TO pledgeview_definer;
GRANT SELECT ON ${model}.watermark TO pledgeview_definer;
GRANT SELECT ON ${model}.identity TO pledgeview_definer;
GRANT SELECT ON ${model}.projector_log TO pledgeview_definer;
GRANT SELECT ON ${model}.api_keys TO pledgeview_definer;
GRANT SELECT ON ${model}.api_key_ledger TO pledgeview_definer;
GRANT SELECT ON ${model}.campaign_ledger TO pledgeview_definer;
GRANT SELECT ON ${model}.campaign_days TO pledgeview_definer;
GRANT SELECT ON ${model}.history_latest TO pledgeview_definer;
GRANT SELECT ON ${model}.history_closed TO pledgeview_definer;
GRANT SELECT ON ${model}.history_end TO pledgeview_definer;
GRANT SELECT ON ${model}.history_open TO pledgeview_definer;
GRANT SELECT ON ${model}.history_days TO pledgeview_definer;
GRANT SELECT ON ${model}.history_moves TO pledgeview_definer;
