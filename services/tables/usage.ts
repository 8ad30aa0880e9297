/** Removes the usage of keys (contracts/tables/0004-usage.sql): after the deletion of an account, and in a purge. */
import { idParts } from './parameter-parts.ts'
import type { Shard } from './port.ts'

// Of one statement, so that it stays short.
const keysMax = 500

/**
 * Removes everything that was counted for these keys, and resolves when no query finds it any more. Call it when the keys
 * are deleted: a process that has just answered one may write a count some seconds later. On a cluster: for each shard.
 * The user needs ALTER DELETE on the table. Rejects with `TablesError`.
 */
export async function removeUsage(
  { tables, databases }: Pick<Shard, 'tables' | 'databases'>,
  keys: readonly string[],
): Promise<void> {
  for (const some of idParts(keys, keysMax)) {
    await tables.run({
      query: `ALTER TABLE ${databases.base}.api_key_usage DELETE WHERE api_key IN {keys:Array(String)} SETTINGS mutations_sync = 2`,
      query_params: { keys: some },
    })
  }
}
