/**
 * Withdrawals: rows of a ledger without content, because the entity was deleted, hidden or cancelled. They travel
 * from the current ledgers into those of the new generation, because the history of a rebuild may not have them: the log has
 * compacted the tombstone away, or older events were appended again.
 *
 * Promises:
 * - What is withdrawn in the live tables is not shown by the generation that is promoted, whatever history was read. Versions
 *   decide, as in every ledger: only a later version shows a hidden campaign again, and nothing ranks after a tombstone.
 * - The new ledgers have the tombstones too, so that a later rebuild or a rollback does not bring the entity back either.
 * How it fails: it throws what the tables throw. It can be repeated at any time.
 */
import { tombstoneVersion } from '../../projector/ingest/ledger-rows.ts'
import type { Tables } from '../../tables/port.ts'
import { readSql } from '../../tables/read-sql.ts'
import { nameDatabases } from '../../tables/schema/migrate.ts'
import { ledgers, newerQuery, type Sides } from './ledgers.ts'
import { changedSince, rangesOf, readClock, type Scope } from './scope.ts'

export interface Withdrawals {
  /** Carries what was withdrawn since the last call; the first call carries everything. Its fold has to follow. */
  carry(signal: AbortSignal): Promise<void>
}

export interface WithdrawalsDependencies extends Sides {
  tables: Tables
  /** Names this run of the rebuild; unique. */
  run: string
}

const announce = readSql('announce-withdrawals', import.meta.url)
// ClickHouse's clock may step back by less than this meanwhile. What is carried twice changes nothing.
const marginMs = 3_600_000

export function createWithdrawals({ tables, live, rebuilt, run }: WithdrawalsDependencies): Withdrawals {
  let carried: number | undefined
  let calls = 0

  async function carryOf(scope: Scope): Promise<void> {
    const { condition } = scope
    const parameters = { ...scope.parameters, projector: `${run}-withdrawals-${++calls}` }
    await tables.run({ query: announcement(condition), query_params: parameters })
    const [announced] = await tables.rows({
      query: `SELECT 1 FROM ${rebuilt.ledger}.batch_log WHERE projector = {projector:String} LIMIT 1`,
      query_params: parameters,
    })
    // Usually there is nothing to carry.
    if (!announced) return
    for (const query of copies(condition)) await tables.run({ query, query_params: parameters })
  }

  return {
    async carry(signal) {
      // What a projector inserts later than this, it appends to the batch log later than this.
      const now = await readClock(tables)
      const scopes =
        carried === undefined ? await rangesOf(tables, live) : [changedSince(live, carried - marginMs)]
      for (const scope of scopes) {
        signal.throwIfAborted()
        await carryOf(scope)
      }
      carried = now
    },
  }

  function announcement(condition: string): string {
    const campaigns = ledgers.map(
      one => `SELECT campaign_id FROM (${newerQuery(one, { live, rebuilt }, condition, one.withdrawn)})`,
    )
    return nameDatabases(announce, rebuilt)
      .replaceAll('${live}', live.ledger)
      .replaceAll('${scope}', condition)
      .replaceAll('${tombstone}', String(tombstoneVersion))
      .replaceAll('${withdrawn_campaigns}', () => campaigns.join(' UNION ALL '))
  }

  /**
   * The live projectors go on. A withdrawal that is newer than the announcement waits for the next one: if its campaign were not folded
   * again, the read table would not match the ledger.
   */
  function copies(condition: string): string[] {
    const announced = `${condition} AND campaign_id IN
        (SELECT arrayJoin(campaign_ids) FROM ${rebuilt.ledger}.batch_log WHERE projector = {projector:String})`
    return ledgers.map(ledger => {
      const { name, key, columns } = ledger
      return `INSERT INTO ${rebuilt.ledger}.${name} (${columns}) SETTINGS async_insert = 0
        SELECT ${columns} FROM ${live.ledger}.${name} FINAL
        WHERE ${ledger.withdrawn} AND ${announced} AND (${key}) IN
          (SELECT ${key} FROM (${newerQuery(ledger, { live, rebuilt }, announced, ledger.withdrawn)}))`
    })
  }
}
