-- The portal's topics. They are no part of schema version 1, so that an older program opens this journal, too. Their names
-- are older than their place among the topics. They have the form of a topic's table in schema.sql.

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
