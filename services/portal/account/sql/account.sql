-- An account, as the ledger has it now (private). A row without an address is deleted.

SELECT
    account_id,
    toString(version) AS version,
    email,
    toUnixTimestamp64Milli(created_at) AS created_at,
    toUnixTimestamp64Milli(sessions_valid_from) AS sessions_valid_from,
    toUnixTimestamp64Milli(changed_at) AS changed_at,
    toUnixTimestamp64Milli(written_at) AS came_at,
    toUnixTimestamp64Milli(now64(3, 'UTC')) - came_at AS age_ms
FROM ${base}.account_ledger FINAL
WHERE account_id = {account_id:String}
