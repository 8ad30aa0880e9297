/**
 * Withdrawals: rows of a ledger without content, because the entity was deleted, hidden, cancelled or revoked. They travel
 * from the live ledgers into the shadow ledgers, because the history of a rebuild may not have them: the log has
 * compacted the tombstone away, or older events were appended again.
 *
 * Promises:
 * - What is withdrawn in the live tables is not shown by the tables that are swapped in, whatever history was read. Versions
 *   decide, as in every ledger: only a later version shows a hidden campaign again, and nothing ranks after a tombstone.
 * - The new ledgers have the tombstones too, so that a later rebuild or a rollback does not bring the entity back either.
 * How it fails: it throws what the tables throw. It can be repeated at any time.
 */
import { tombstoneVersion } from '../../projector/ingest/ledger-rows.ts'
import { nameDatabases } from '../../tables/migrate.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { readSql } from '../../tables/read-sql.ts'
import { type Ledger, ledgers, withdrawnQuery } from './ledgers.ts'
import { conditionOf, rangesOf, type Scope } from './scope.ts'
import { shadowOf } from './shadow-tables.ts'

export interface Withdrawals {
  /**
   * Carries what was withdrawn since the last call; the first call carries everything. The fold of the shadow tables has to
   * follow.
   */
  carry(signal: AbortSignal): Promise<void>
  /** The same in one statement per table, for a moment in which little is new. Resolves with the campaigns to fold. */
  carryRest(): Promise<string[]>
}

export interface WithdrawalsDependencies {
  tables: Tables
  /** The live tables. */
  databases: Databases
  /** Names this run of the rebuild; unique. */
  run: string
}

const everything: Scope = { after: null, upTo: null }
const announce = readSql('announce-withdrawals', import.meta.url)
// ClickHouse's clock may step back by less than this meanwhile. What is carried twice changes nothing.
const marginMs = 3_600_000

export function createWithdrawals({ tables, databases, run }: WithdrawalsDependencies): Withdrawals {
  let carried: number | undefined
  let calls = 0

  /** Carries the withdrawals of these campaigns. Resolves with the campaigns to fold. */
  async function carryOf(scope: Scope, since: number | undefined, alsoKeys: boolean): Promise<string[]> {
    const projector = `${run}-withdrawals-${++calls}`
    const { announcement, copies, parameters } = statementsOf(databases, { scope, since, alsoKeys })
    await tables.run({ query: announcement, query_params: { ...parameters, projector } })
    const announced = await readAnnounced(tables, shadowOf(databases), projector)
    // Usually there is nothing to carry.
    if (!announced) return []
    for (const { ledger, query } of copies) {
      if (ledger.name === 'api_key_ledger' && announced.keys === 0) continue
      await tables.run({ query, query_params: { ...parameters, projector } })
    }
    return announced.campaign_ids
  }

  return {
    async carry(signal) {
      // What a projector inserts later than this, it appends to the batch log later than this.
      const now = await readClock(tables)
      for (const [place, range] of (await rangesOf(tables, databases)).entries()) {
        signal.throwIfAborted()
        await carryOf(range, carried, place === 0)
      }
      carried = now
    },

    async carryRest() {
      const now = await readClock(tables)
      const campaigns = await carryOf(everything, carried, true)
      carried = now
      return campaigns
    },
  }
}

interface Extent {
  scope: Scope
  /** Only what was withdrawn after this moment, and a little before it. Unix ms, of ClickHouse's clock. */
  since: number | undefined
  alsoKeys: boolean
}

function statementsOf(live: Databases, { scope, since, alsoKeys }: Extent) {
  const sides = { live, rebuilt: shadowOf(live) }
  const { condition, parameters } = conditionOf(scope)
  const isNew = `campaign_id IN (SELECT arrayJoin(campaign_ids) FROM ${live.model}.batch_log
        WHERE appended_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC'))`
  const scopeOfPledges = since === undefined ? condition : `${condition} AND ${isNew}`
  const scopeOf = ({ name }: Ledger) => {
    if (name === 'api_key_ledger') return alsoKeys ? '1' : '0'
    return scopeOfPledges
  }
  const selections = new Map(
    ledgers.map(ledger => [ledger.name, withdrawnQuery(ledger, sides, scopeOf(ledger))]),
  )
  const announcement = nameDatabases(announce, sides.rebuilt)
    .replaceAll('${live}', live.model)
    .replaceAll('${scope}', scopeOfPledges)
    .replaceAll('${tombstone}', String(tombstoneVersion))
    .replaceAll('${withdrawn_campaigns}', () => selections.get('campaign_ledger') ?? '')
    .replaceAll('${withdrawn_pledges}', () => selections.get('pledge_ledger') ?? '')
    .replaceAll('${withdrawn_keys}', () => selections.get('api_key_ledger') ?? '')
  // The live projectors go on. A withdrawal that is newer than the announcement waits for the next one: if its campaign were
  // not folded again, the read table would not match the ledger.
  const isAnnounced = `campaign_id IN
        (SELECT arrayJoin(campaign_ids) FROM ${sides.rebuilt.model}.batch_log WHERE projector = {projector:String})`
  const copies = ledgers
    .filter(({ name }) => name !== 'api_key_ledger' || alsoKeys)
    .map(ledger => {
      const { name, columns } = ledger
      const scopeOfCopy = name === 'api_key_ledger' ? '1' : `${scopeOfPledges} AND ${isAnnounced}`
      const insert = `INSERT INTO ${sides.rebuilt.model}.${name} (${columns.join(', ')})`
      const settings = 'SETTINGS async_insert = 0, join_use_nulls = 0'
      return { ledger, query: `${insert} ${settings} ${withdrawnQuery(ledger, sides, scopeOfCopy)}` }
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

/** What was announced; `undefined` if nothing was. */
async function readAnnounced(
  tables: Tables,
  { model }: Databases,
  projector: string,
): Promise<{ campaign_ids: string[]; keys: number } | undefined> {
  const [announced] = await tables.rows<{ campaign_ids: string[]; keys: number }>({
    query: `SELECT campaign_ids, keys FROM ${model}.batch_log WHERE projector = {projector:String} LIMIT 1`,
    query_params: { projector },
  })
  return announced
}
