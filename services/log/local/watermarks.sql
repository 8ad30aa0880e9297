-- The watermarks that a reader remembers, Unix ms: no list has shown a higher one; lists have shown this one.
CREATE TABLE watermarks
(
    consumer  TEXT PRIMARY KEY,
    watermark INTEGER NOT NULL,
    shown     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
