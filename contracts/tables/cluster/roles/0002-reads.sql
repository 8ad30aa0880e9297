-- More rights on a cluster: whoever reads the whole reads what every shard adds to it (../0001-parts.sql).

GRANT SELECT ON ${model}.campaign_rows TO pledgeview_query;
GRANT SELECT ON ${model}.campaign_slugs TO pledgeview_query;
GRANT SELECT ON ${model}.shard_watermark TO pledgeview_query;
GRANT SELECT ON ${model}.shard_watermark TO pledgeview_portal;
