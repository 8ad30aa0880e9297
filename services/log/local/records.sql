-- The journal: the embedded event log, one SQLite file. Its schema version is in file.ts (PRAGMA user_version).

-- A topic is one table with one partition, 0 (file.ts says which tables there are, and puts their names here). AUTOINCREMENT makes offsets
-- only grow: an offset is never used twice, even after a deletion. The first offset is 1. Writers wait for each other, so offsets become
-- visible in order.
CREATE TABLE {table}
(
    offset      INTEGER PRIMARY KEY AUTOINCREMENT,
    appended_at INTEGER NOT NULL, -- ms since the epoch
    key         BLOB,
    value       BLOB              -- NULL: a tombstone
) STRICT;
