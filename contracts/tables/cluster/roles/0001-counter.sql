-- The servers read from each other what people are counted from (../0003-people.sql). Grant this role to the user that
-- remote_servers names for it, and nothing else. No person and no other service needs it.

CREATE ROLE IF NOT EXISTS pledgeview_counter;

GRANT SELECT ON ${base}.shard_backers TO pledgeview_counter;
GRANT SELECT ON ${base}.shard_creators TO pledgeview_counter;

-- The server that was asked reads its own shard, and the table over all shards, as the definer.
GRANT SELECT ON ${base}.shard_backers TO pledgeview_definer;
GRANT SELECT ON ${base}.shard_creators TO pledgeview_definer;
