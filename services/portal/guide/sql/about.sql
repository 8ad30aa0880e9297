-- What /data says of the data as a whole. One row.

SELECT
    platform_currency AS currency,
    campaigns,
    toUnixTimestamp64Milli(as_of) AS as_of,
    if(history_from IS NULL, '', toString(history_from)) AS history_from,
    if(history_kept_from IS NULL, '', toString(history_kept_from)) AS history_kept_from
FROM ${views}.about
SETTINGS max_threads = 2
