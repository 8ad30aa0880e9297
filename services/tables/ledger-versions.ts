/** The versions that the ledger has of the entities of some events. */
import { type ChangeEvent, topicOf } from '../../contracts/events/event.ts'
import { idChunks } from './clickhouse/statements.ts'
import { qualified } from './generation-log.ts'
import type { Databases, Tables } from './port.ts'

/** Names an entity: `topic/key`. */
export function entityOf({ type, key }: Pick<ChangeEvent, 'type' | 'key'>): string {
  return `${topicOf[type]}/${key}`
}

const keysMax = 1_000
// The ledger of each type, the first column of its order, and the expression for the key of an event.
const ledgers = {
  campaign: ['campaign_ledger', 'campaign_id', 'campaign_id'],
  pledge: ['pledge_ledger', 'campaign_id', "concat(campaign_id, '/', pledge_id)"],
  'api-key': ['api_key_ledger', 'api_key', 'api_key'],
} as const

/** The highest version that the ledger has of each of these events' entities, by `entityOf`. */
export async function ledgerVersions(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  events: readonly ChangeEvent[],
): Promise<Map<string, bigint>> {
  const versions = new Map<string, bigint>()
  for (const [type, ofType] of Map.groupBy(events, event => event.type)) {
    const keys = [...new Set(ofType.map(event => event.key))]
    const columns = 'toString(max(version)) AS version'
    const rows = await ledgerRows<{ id: string; version: string }>(tables, databases, {
      type,
      keys,
      columns,
      end: 'GROUP BY id',
    })
    for (const { id, version } of rows) versions.set(entityOf({ type, key: id }), BigInt(version))
  }
  return versions
}

/** What the ledger has of these keys: a row for each of its rows, also of those that are superseded and not merged yet. */
export async function ledgerRows<Row>(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  {
    type,
    keys,
    columns,
    end = '',
  }: { type: ChangeEvent['type']; keys: readonly string[]; columns: string; end?: string },
): Promise<Row[]> {
  const [ledger, first, key] = ledgers[type]
  const found: Row[] = []
  for (const some of idChunks(keys, keysMax)) {
    const firsts = type === 'pledge' ? some.map(one => one.slice(0, one.indexOf('/'))) : some
    const rows = await tables.rows<Row>({
      query: `SELECT ${key} AS id, ${columns} FROM ${qualified(ledger, databases)}
        WHERE ${first} IN {firsts:Array(String)} AND ${key} IN {keys:Array(String)} ${end}`,
      query_params: { firsts: [...new Set(firsts)], keys: some },
    })
    for (const row of rows) found.push(row)
  }
  return found
}
