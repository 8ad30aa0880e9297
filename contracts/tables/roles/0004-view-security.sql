-- The views read as the definer. This runs after every migration, because a view that is created again belongs to the
-- user that created it.

ALTER TABLE ${views}.campaigns MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${views}.rewards MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${views}.categories MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${views}.platform_totals MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${views}.about MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${read}.campaign_changes MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${read}.campaign_pages MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${read}.campaign_by_slug MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${read}.removals MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${read}.watermark MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${base}.revoked_keys MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${views}.campaign_days MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${views}.campaign_funding_days MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${views}.category_funding_days MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${views}.funding_days MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${base}.history_end MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${base}.history_days MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${base}.history_moves MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
