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
import { nameDatabases } from '../../tables/migrate.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { readSql } from '../../tables/read-sql.ts'
import { ledgers, type Sides, withdrawnQuery } from './ledgers.ts'
import { conditionOf, rangesOf, type Scope } from './scope.ts'

export interface Withdrawals {
  /**
   * Carries what was withdrawn since the last call; the first call carries everything. Its fold has to follow.
   */
  carry(signal: AbortSignal): Promise<void>
  /** The same in one statement per table, for a moment in which little is new. Resolves with the campaigns to fold. */
  carryRest(): Promise<string[]>
}

export interface WithdrawalsDependencies extends Sides {
  tables: Tables
  /** Names this run of the rebuild; unique. */
  run: string
}

const everything: Scope = { after: null, upTo: null }
const announce = readSql('announce-withdrawals', import.meta.url)
// ClickHouse's clock may step back by less than this meanwhile. What is carried twice changes nothing.
const marginMs = 3_600_000

export function createWithdrawals({ tables, live, rebuilt, run }: WithdrawalsDependencies): Withdrawals {
  let carried: number | undefined
  let calls = 0

  /** Carries the withdrawals of these campaigns. Resolves with the campaigns to fold. */
  async function carryOf(scope: Scope, since: number | undefined): Promise<string[]> {
    const projector = `${run}-withdrawals-${++calls}`
    const { announcement, copies, parameters } = statementsOf({ live, rebuilt }, scope, since)
    await tables.run({ query: announcement, query_params: { ...parameters, projector } })
    const announced = await readAnnounced(tables, rebuilt, projector)
    // Usually there is nothing to carry.
    if (announced.length === 0) return []
    for (const query of copies) {
      await tables.run({ query, query_params: { ...parameters, projector } })
    }
    return announced
  }

  return {
    async carry(signal) {
      // What a projector inserts later than this, it appends to the batch log later than this.
      const now = await readClock(tables)
      for (const range of await rangesOf(tables, live)) {
        signal.throwIfAborted()
        await carryOf(range, carried)
      }
      carried = now
    },

    async carryRest() {
      const now = await readClock(tables)
      const campaigns = await carryOf(everything, carried)
      carried = now
      return campaigns
    },
  }
}

/** `since`: only what was withdrawn after this moment, and a little before it. Unix ms, of ClickHouse's clock. */
function statementsOf(sides: Sides, scope: Scope, since: number | undefined) {
  const { live, rebuilt } = sides
  const { condition, parameters } = conditionOf(scope)
  const isNew = `campaign_id IN (SELECT arrayJoin(campaign_ids) FROM ${live.ledger}.batch_log
        WHERE appended_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC'))`
  const scopeOf = since === undefined ? condition : `${condition} AND ${isNew}`
  const selections = new Map(ledgers.map(ledger => [ledger.name, withdrawnQuery(ledger, sides, scopeOf)]))
  const announcement = nameDatabases(announce, rebuilt)
    .replaceAll('${live}', live.ledger)
    .replaceAll('${scope}', scopeOf)
    .replaceAll('${tombstone}', String(tombstoneVersion))
    .replaceAll('${withdrawn_campaigns}', () => selections.get('campaign_ledger') ?? '')
    .replaceAll('${withdrawn_pledges}', () => selections.get('pledge_ledger') ?? '')
  // The live projectors go on. A withdrawal that is newer than the announcement waits for the next one: if its campaign were
  // not folded again, the read table would not match the ledger.
  const isAnnounced = `campaign_id IN
        (SELECT arrayJoin(campaign_ids) FROM ${rebuilt.ledger}.batch_log WHERE projector = {projector:String})`
  const copies = ledgers.map(ledger => {
    const { name, columns } = ledger
    const insert = `INSERT INTO ${rebuilt.ledger}.${name} (${columns.join(', ')})`
    const settings = 'SETTINGS async_insert = 0, join_use_nulls = 0'
    return `${insert} ${settings} ${withdrawnQuery(ledger, sides, `${scopeOf} AND ${isAnnounced}`)}`
  })
  return {
    announcement,
    copies,
    parameters: { ...parameters, ...(since !== undefined && { since: since - marginMs }) },
  }
}

/** ClickHouse's clock, Unix ms. */
async function readClock(tables: Tables): Promise<number> {
  const [row] = await tables.rows<{ now: number }>({
    query: "SELECT toUnixTimestamp64Milli(now64(3, 'UTC')) AS now",
  })
  if (row === undefined) throw new Error('ClickHouse told no time')
  return row.now
}

/** The campaigns that were announced. */
async function readAnnounced(tables: Tables, { ledger }: Databases, projector: string): Promise<string[]> {
  const [announced] = await tables.rows<{ ids: string[] }>({
    query: `SELECT groupUniqArrayArray(campaign_ids) AS ids FROM ${ledger}.batch_log WHERE projector = {projector:String}`,
    query_params: { projector },
  })
  return announced?.ids ?? []
}
