/** Finds what the live ledgers have and the rebuilt ones do not: entities, newer versions, and deletions. */

import { tombstoneVersion } from '../../projector/ingest/ledger-rows.ts'
import { idParts } from '../../tables/parameter-parts.ts'
import type { Tables } from '../../tables/port.ts'
import { differsQuery, type Ledger, ledgers, missingQuery, type Sides } from '../build/ledgers.ts'
import { conditionOf, idsPerStatement, type Scope } from '../build/scope.ts'

/** An entity of the live ledger, of which the rebuilt ledger has an older version or nothing. */
export interface Missing {
  ledger: Ledger['name']
  /** Campaign id, or campaign and pledge id. */
  key: readonly string[]
  liveVersion: bigint
  /** `undefined`: the entity is unknown. */
  rebuiltVersion: bigint | undefined
  /** Whether it is deleted, hidden or cancelled in the live tables. */
  isWithdrawn: boolean
}

const missingMax = 10_000

/** Returns at most 10,000 of each ledger, of the campaigns in scope. */
export async function readMissing(tables: Tables, sides: Sides, scope: Scope): Promise<Missing[]> {
  const { condition, parameters } = conditionOf(scope)
  const missing: Missing[] = []
  for (const ledger of ledgers) {
    const differs = await tables.rows({
      query: differsQuery(ledger, sides, condition, '1'),
      query_params: parameters,
    })
    if (differs.length === 0) continue
    const rows = await tables.rows<MissingRow>({
      query: missingQuery(ledger, sides, condition, missingMax),
      query_params: parameters,
    })
    missing.push(...rows.map(row => missingOf(ledger, row)))
  }
  return [...missing, ...(await readShownDeletions(tables, sides, scope))]
}

/** What is still missing after the new generation has caught up, compared with what the live tables had before. */
export async function stillMissing(
  tables: Tables,
  sides: Sides,
  before: readonly Missing[],
): Promise<Missing[]> {
  const campaigns = [...new Set(before.map(({ key }) => key[0] ?? ''))]
  const now: Missing[] = []
  for (const ids of idParts(campaigns, idsPerStatement))
    now.push(...(await readMissing(tables, sides, { ids })))
  const nameOf = ({ ledger, key }: Missing) => JSON.stringify([ledger, key])
  const current = new Map(now.map(missing => [nameOf(missing), missing]))
  return before.filter(missing => {
    const found = current.get(nameOf(missing))
    return found !== undefined && (found.rebuiltVersion ?? -1n) < missing.liveVersion
  })
}

/** The places for a message. Pledges are counted by campaign. */
export function lossesOf(lost: readonly Missing[]): { place: string; reason: string }[] {
  const byPlace = Map.groupBy(lost, missing => `${placeOf(missing)} ${lossOf(missing)}`)
  return [...byPlace.values()].flatMap(members => {
    const [first] = members
    if (!first) return []
    const count = first.ledger === 'pledge_ledger' ? ` (${members.length} of them)` : ''
    return [{ place: placeOf(first), reason: `${lossOf(first)}${count}` }]
  })
}

/** For example `campaign 12`. */
export function placeOf({ ledger, key }: Missing): string {
  const kinds = {
    campaign_ledger: 'campaign',
    pledge_ledger: 'pledges of campaign',
  } as const
  return `${kinds[ledger]} ${key[0]}`
}

function lossOf({ ledger, rebuiltVersion }: Missing): string {
  const areMany = ledger === 'pledge_ledger'
  return rebuiltVersion === undefined
    ? `${areMany ? 'are' : 'is'} in the live tables, but not in the history that was read`
    : `${areMany ? 'have' : 'has'} newer versions in the live tables than in the history that was read`
}

interface MissingRow {
  entity: string[]
  live_version: string
  rebuilt_version: string
  is_known: number
  is_withdrawn: number
}

function missingOf({ name }: Ledger, row: MissingRow): Missing {
  return {
    ledger: name,
    key: row.entity,
    liveVersion: BigInt(row.live_version),
    rebuiltVersion: row.is_known ? BigInt(row.rebuilt_version) : undefined,
    isWithdrawn: row.is_withdrawn === 1,
  }
}

/**
 * Campaigns that the rebuilt read table shows although the live ledger has their tombstone. It does not ask the rebuilt
 * ledger, so it also finds a read table that does not match its ledger.
 */
async function readShownDeletions(
  tables: Tables,
  { live, rebuilt }: Sides,
  scope: Scope,
): Promise<Missing[]> {
  const { condition, parameters } = conditionOf(scope)
  const rows = await tables.rows<{ id: string }>({
    query: `SELECT campaign_id AS id FROM ${rebuilt.read}.campaigns FINAL
      WHERE ${condition} AND campaign_id IN
        (SELECT campaign_id FROM ${live.ledger}.campaign_ledger WHERE version = ${tombstoneVersion} AND ${condition})
      ORDER BY id LIMIT ${missingMax}`,
    query_params: parameters,
  })
  return rows.map(({ id }) => ({
    ledger: 'campaign_ledger',
    key: [id],
    liveVersion: tombstoneVersion,
    rebuiltVersion: undefined,
    isWithdrawn: true,
  }))
}
