-- What the tables began with, so that a process with other settings is refused before it mixes two worlds in one table:
-- another backer key counts every backer anew, another currency names the same money otherwise. Secrets as fingerprints.

CREATE TABLE IF NOT EXISTS ${model}.identity
(
    setting     String COMMENT 'Name of the setting',
    fingerprint String COMMENT 'Of its value; the value itself where it is no secret',
    held_at     DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY setting
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
