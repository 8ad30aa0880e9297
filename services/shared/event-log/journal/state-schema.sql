-- The state topics of the journal: what the portal keeps. They are no part of schema version 1, which an older program reads
-- too: it leaves these tables alone. A process that opens a state topic makes them.
--
-- Like a topic's table of schema.sql: one partition, 0, and offsets that only grow. They have no consumers, because a process
-- reads a state topic from its start. The last record of a key counts.

CREATE TABLE IF NOT EXISTS state_accounts
(
    offset      INTEGER PRIMARY KEY AUTOINCREMENT,
    appended_at INTEGER NOT NULL, -- ms since the epoch
    key         BLOB,
    value       BLOB              -- NULL: a tombstone
) STRICT;

CREATE TABLE IF NOT EXISTS state_notices
(
    offset      INTEGER PRIMARY KEY AUTOINCREMENT,
    appended_at INTEGER NOT NULL,
    key         BLOB,
    value       BLOB
) STRICT;
