-- The settings that the tables began with. A process with other settings is refused, because it would corrupt the
-- tables: with another backer key every backer would count again, and with another currency the same amounts would
-- mean other money. Secrets are stored as fingerprints.

CREATE TABLE IF NOT EXISTS ${model}.identity
(
    setting     String COMMENT 'Name of the setting',
    fingerprint String COMMENT 'Of its value; the value itself where it is no secret',
    held_at     DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY setting
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
