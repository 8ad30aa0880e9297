-- What the first page says of the data. One row. The view `about` would look for the first day of the history, too: only its
-- watermark is read, and the campaigns are counted by themselves.

SELECT
    (SELECT count() FROM ${views}.campaigns) AS campaigns,
    toUnixTimestamp64Milli((SELECT as_of FROM ${views}.about)) AS as_of,
    toUnixTimestamp64Milli(now64(3, 'UTC')) AS read_at
SETTINGS max_execution_time = 3
