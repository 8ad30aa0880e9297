-- Who the views read as, on a server with users: somebody who may read what the views need and nothing else, and who
-- cannot log in (no host, and no password has this hash). Else it would be whoever ran the migrations, with all rights.
--
-- These files run after every migration, since a view that is made anew belongs to whoever made it.

CREATE USER IF NOT EXISTS pledgeview_definer
IDENTIFIED WITH sha256_hash BY '0000000000000000000000000000000000000000000000000000000000000000'
HOST NONE;

GRANT SELECT ON ${model}.campaigns TO pledgeview_definer;
GRANT SELECT ON ${model}.pledge_ledger TO pledgeview_definer;

ALTER TABLE ${views}.campaigns MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${views}.rewards MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${views}.categories MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${views}.platform_totals MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${model}.campaign_changes MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
