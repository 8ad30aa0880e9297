/** Finds what the live ledgers have and the rebuilt ones do not: entities, newer versions, and deletions. */
import { idParts } from '../../tables/clickhouse/parameter-parts.ts'
import type { Tables } from '../../tables/port.ts'
import { ledgers, newerQuery, type Sides } from '../build/ledgers.ts'
import type { Scope } from '../build/scope.ts'

/** An entity of the live ledger, of which the rebuilt ledger has an older version or nothing. */
export interface Missing {
  campaign: string
  /** Which entity of the campaign: itself, or one of its pledges. */
  entity: string
  isPledge: boolean
  liveVersion: bigint
  /** -1: the entity is unknown. */
  rebuiltVersion: bigint
  /** Whether it is deleted, hidden or cancelled in the live tables. */
  isWithdrawn: boolean
}

const missingMax = 10_000
const idsPerStatement = 1_000

/** Returns at most 10,000 of each ledger, of the campaigns in scope. */
export async function readMissing(
  tables: Tables,
  sides: Sides,
  { condition, parameters }: Scope,
): Promise<Missing[]> {
  const missing = ledgers.map(async ledger => {
    const query = `SELECT campaign_id AS campaign, toJSONString([${ledger.key}]) AS entity, toUInt8(is_withdrawn) AS isWithdrawn,
        toString(live_version) AS liveVersion, if(is_known, toString(rebuilt_version), '-1') AS rebuiltVersion
      FROM (${newerQuery(ledger, sides, condition)}) ORDER BY ${ledger.key} LIMIT ${missingMax}`
    const rows = await tables.rows<MissingRow>({ query, query_params: parameters })
    return rows.map(({ liveVersion, rebuiltVersion, isWithdrawn, ...row }) => ({
      ...row,
      isPledge: ledger.name === 'pledge_ledger',
      isWithdrawn: isWithdrawn === 1,
      liveVersion: BigInt(liveVersion),
      rebuiltVersion: BigInt(rebuiltVersion),
    }))
  })
  return (await Promise.all(missing)).flat()
}

interface MissingRow {
  campaign: string
  entity: string
  liveVersion: string
  rebuiltVersion: string
  isWithdrawn: number
}

/** What is still missing after the new generation has caught up, compared with what the live tables had before. */
export async function stillMissing(
  tables: Tables,
  sides: Sides,
  before: readonly Missing[],
): Promise<Missing[]> {
  const now = new Map<string, Missing>()
  for (const ids of idParts([...new Set(before.map(({ campaign }) => campaign))], idsPerStatement)) {
    const scope = { condition: 'campaign_id IN {ids:Array(String)}', parameters: { ids } }
    for (const missing of await readMissing(tables, sides, scope)) now.set(missing.entity, missing)
  }
  return before.filter(({ entity, liveVersion }) => {
    const found = now.get(entity)
    return found !== undefined && found.rebuiltVersion < liveVersion
  })
}

/** The places for a message. Pledges are counted by campaign. */
export function lossesOf(lost: readonly Missing[]): { place: string; reason: string }[] {
  const byPlace = Map.groupBy(lost, missing => `${placeOf(missing)} ${missing.rebuiltVersion < 0n}`)
  return [...byPlace.values()].flatMap(([first, ...others]) => {
    if (!first) return []
    const { isPledge } = first
    const reason =
      first.rebuiltVersion < 0n
        ? `${isPledge ? 'are' : 'is'} in the live tables, but not in the history that was read`
        : `${isPledge ? 'have' : 'has'} newer versions in the live tables than in the history that was read`
    return [
      { place: placeOf(first), reason: `${reason}${isPledge ? ` (${others.length + 1} of them)` : ''}` },
    ]
  })
}

/** For example `campaign 12`. */
export function placeOf({ isPledge, campaign }: Missing): string {
  return `${isPledge ? 'pledges of campaign' : 'campaign'} ${campaign}`
}
