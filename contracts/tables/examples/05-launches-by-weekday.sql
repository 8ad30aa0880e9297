-- On which weekday are campaigns launched, and does it matter?
--
-- Weekdays in UTC. launched counts live campaigns too; the success rate does not.
SELECT
    dateName('weekday', assumeNotNull(launch_date)) AS weekday,
    count() AS launched,
    countIf(status = 'FUNDED') AS funded,
    round(100 * funded / nullIf(countIf(status != 'LIVE'), 0), 1) AS success_percent
FROM crowdfunding.campaigns
WHERE launch_date IS NOT NULL
GROUP BY weekday, toDayOfWeek(assumeNotNull(launch_date)) AS weekday_number
ORDER BY weekday_number
