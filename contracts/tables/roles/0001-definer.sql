-- The views read as this user. It may read only what they need, and it cannot log in (it has no host, and no password
-- has this hash). Without it the views would read as the user that ran the migrations, with all rights.

CREATE USER IF NOT EXISTS pledgeview_definer
IDENTIFIED WITH sha256_hash BY '0000000000000000000000000000000000000000000000000000000000000000'
HOST NONE;

-- A view passes the settings of a query on to the tables that it reads. Some of them show rows that FINAL hides, or are conditions
-- on private columns. So with readonly = 1 the view ignores them all, those of later versions of ClickHouse included, except for
-- these, with which the services read less, or read more slowly. None of them changes which rows a view shows
-- (test/integration/tables/every-setting.test.ts). This replaces all other settings of this user.
ALTER USER pledgeview_definer SETTINGS
    readonly = 1 CONST,
    max_threads CHANGEABLE_IN_READONLY,
    max_read_buffer_size CHANGEABLE_IN_READONLY,
    use_index_for_in_with_subqueries CHANGEABLE_IN_READONLY,
    use_skip_indexes_if_final CHANGEABLE_IN_READONLY;

-- ClickHouse knows a wildcard for databases, but none for one table in all of them. Nobody can be this user, so that is no wider right.
GRANT SELECT ON ${base}_ledger_*.* TO pledgeview_definer;
GRANT SELECT ON ${base}_read_*.* TO pledgeview_definer;
GRANT SELECT ON ${base}.identity TO pledgeview_definer;
GRANT SELECT ON ${base}.projector_log TO pledgeview_definer;
GRANT SELECT ON ${base}.api_keys TO pledgeview_definer;
GRANT SELECT ON ${base}.api_key_ledger TO pledgeview_definer;
GRANT SELECT ON ${base}.campaign_days TO pledgeview_definer;
GRANT SELECT ON ${base}.history_marks TO pledgeview_definer;
GRANT SELECT ON ${base}.history_end TO pledgeview_definer;
GRANT SELECT ON ${base}.history_days TO pledgeview_definer;
GRANT SELECT ON ${base}.history_gains TO pledgeview_definer;
GRANT SELECT ON ${base}.history_moves TO pledgeview_definer;
