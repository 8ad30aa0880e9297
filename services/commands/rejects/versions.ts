/** The version that the ledger has of an entity. The same version or an older one adds nothing to the log. */

import { type ChangeEvent, topicOf } from '../../../contracts/events/event.ts'
import { pledgeIdsOf } from '../../../contracts/events/rules.ts'
import { tombstoneVersion } from '../../projector/ingest/ledger-rows.ts'
import { idParts } from '../../tables/parameter-parts.ts'
import type { Databases, Statement, Tables } from '../../tables/port.ts'

const keysMax = 1_000

/** By `entityOf`. */
export type Versions = Map<string, bigint>

export function entityOf({ type, key }: Pick<ChangeEvent, 'type' | 'key'>): string {
  return `${topicOf[type]}/${key}`
}

/** A deletion is newer than any state. */
export function versionOf({ data }: ChangeEvent): bigint {
  return BigInt(data === null ? tombstoneVersion : data.version)
}

/** The ledger's versions of these events' entities. */
export async function ledgerVersions(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  events: readonly ChangeEvent[],
): Promise<Versions> {
  const versions: Versions = new Map()
  for (const [type, ofType] of Map.groupBy(events, event => event.type)) {
    for (const keys of idParts([...new Set(ofType.map(({ key }) => key))], keysMax)) {
      const rows = await tables.rows<{ id: string; version: string }>(statementOf(databases, type, keys))
      for (const { id, version } of rows) versions.set(entityOf({ type, key: id }), BigInt(version))
    }
  }
  return versions
}

function statementOf(
  { base, ledger }: Databases,
  type: ChangeEvent['type'],
  keys: readonly string[],
): Statement {
  switch (type) {
    case 'campaign':
      return {
        query: `SELECT campaign_id AS id, toString(max(version)) AS version FROM ${ledger}.campaign_ledger
          WHERE campaign_id IN {keys:Array(String)} GROUP BY id`,
        query_params: { keys },
      }
    case 'pledge':
      // The columns of the table's order come first, so that its primary index is used.
      return {
        query: `SELECT concat(campaign_id, '/', pledge_id) AS id, toString(max(version)) AS version
          FROM ${ledger}.pledge_ledger
          WHERE campaign_id IN {campaigns:Array(String)} AND pledge_id IN {pledges:Array(String)}
            AND concat(campaign_id, '/', pledge_id) IN {keys:Array(String)}
          GROUP BY id`,
        query_params: {
          keys,
          campaigns: keys.map(key => pledgeIdsOf(key)?.campaign_id ?? ''),
          pledges: keys.map(key => pledgeIdsOf(key)?.pledge_id ?? ''),
        },
      }
    case 'api-key':
      return {
        query: `SELECT api_key AS id, toString(max(version)) AS version FROM ${base}.api_key_ledger
          WHERE api_key IN {keys:Array(String)} GROUP BY id`,
        query_params: { keys },
      }
    default:
      return type satisfies never
  }
}
