-- As the file of the same name for one server: the views that every shard adds, and those that count people, read as the
-- definer. The views of the whole cluster read as the person who asks.

ALTER TABLE ${views}.platform_sums MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${views}.backers MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${views}.creators MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${base}.shard_backers MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${base}.shard_creators MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${views}.history_sums MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${views}.history_today MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${read}.campaign_rows MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${read}.campaign_slugs MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
ALTER TABLE ${read}.shard_watermark MODIFY SQL SECURITY DEFINER DEFINER = pledgeview_definer;
