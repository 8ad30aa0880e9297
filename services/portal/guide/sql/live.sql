-- What the first page says of the data. One row.

SELECT
    (SELECT count() FROM ${views}.campaigns) AS campaigns,
    toUnixTimestamp64Milli((SELECT as_of FROM ${views}.about)) AS as_of,
    toUnixTimestamp64Milli(now64(3, 'UTC')) AS read_at
