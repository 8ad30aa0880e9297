/**
 * Whether a generation may be served: its read tables say what its ledger says, and it knows what the live one knows.
 *
 * The sums are made here in other words than the fold makes them. All is done in ranges of campaign ids, because the
 * pledges of a platform do not fit into the memory of one statement.
 */
import { tombstoneVersion } from '../projector/ledger-rows.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'

/** Campaigns by their ids: those after `after` up to `upTo` (null: without that bound), or a few. */
export type Scope = { after: string | null; upTo: string | null } | { ids: readonly string[] }

export interface Mismatch {
  /** For example `campaign 12`. */
  place: string
  reason: string
}

const mismatchesMax = 10
const campaignsPerRange = 20_000

/** Ranges of some 20,000 campaigns each, which together are everything. */
export async function rangesOf(tables: Tables, { model }: Databases): Promise<Scope[]> {
  const [row] = await tables.rows<{ bounds: string[] }>({
    query: `SELECT arrayFilter((id, place) -> place % ${campaignsPerRange} = 0, ids, arrayEnumerate(ids)) AS bounds
            FROM (SELECT arraySort(groupUniqArray(campaign_id)) AS ids FROM ${model}.campaign_ledger)`,
  })
  const bounds = row?.bounds ?? []
  return [...bounds, null].map((upTo, place) => ({ after: bounds[place - 1] ?? null, upTo }))
}

interface ReadRow {
  campaign_id: string
  is_public: number
  is_shown: number
  shown_pledges: string
  pledges: string
  shown_backers: string
  backers: string
  shown_amount: string
  amount: string
  shown_platform_amount: string
  platform_amount: string
}

/** Holds what is shown of these campaigns against the sums of the ledger. The first that do not fit, or none. */
export async function verifyReadTables(
  tables: Tables,
  { model }: Databases,
  scope: Scope,
  { platformDigits }: { platformDigits: number },
): Promise<Mismatch[]> {
  const { condition, parameters } = conditionOf(scope)
  const minor = (digits: string) => `toDecimal256(pow(10, ${digits}), 0)`
  const rows = await tables.rows<ReadRow>({
    query: `SELECT campaign_id, max(is_public) AS is_public, max(is_shown) AS is_shown,
        toString(sum(shown_pledges)) AS shown_pledges, toString(sum(pledges)) AS pledges,
        toString(sum(shown_backers)) AS shown_backers, toString(sum(backers)) AS backers,
        toString(sum(shown_amount)) AS shown_amount, toString(sum(minor_amount) / ${minor('max(digits)')}) AS amount,
        toString(sum(shown_platform_amount)) AS shown_platform_amount,
        toString(sum(minor_platform_amount) / ${minor('{platform_digits:UInt8}')}) AS platform_amount
      FROM
      (
        SELECT campaign_id, toUInt8(is_public) AS is_public, 0 AS is_shown, currency_digits AS digits,
          0 AS shown_pledges, 0 AS pledges, 0 AS shown_backers, 0 AS backers,
          toDecimal256(0, 4) AS shown_amount, toDecimal256(0, 4) AS minor_amount,
          toDecimal256(0, 4) AS shown_platform_amount, toDecimal256(0, 4) AS minor_platform_amount
        FROM ${model}.campaign_ledger FINAL WHERE ${condition}
        UNION ALL
        SELECT campaign_id, 0, 1, 0, pledge_count, 0, backer_count, 0,
          toDecimal256(pledged_amount, 4), toDecimal256(0, 4), toDecimal256(pledged_platform_amount, 4), toDecimal256(0, 4)
        FROM ${model}.campaigns FINAL WHERE ${condition}
        UNION ALL
        SELECT campaign_id, 0, 0, 0, 0, count(), 0, uniqExact(backer_hash),
          toDecimal256(0, 4), toDecimal256(sum(toInt256(amount_minor)), 4),
          toDecimal256(0, 4), toDecimal256(sum(toInt256(platform_amount_minor)), 4)
        FROM ${model}.pledge_ledger FINAL WHERE counts AND ${condition} GROUP BY campaign_id
      )
      GROUP BY campaign_id
      HAVING is_public != is_shown OR (is_shown = 1 AND (shown_pledges != pledges OR shown_backers != backers
        OR toDecimal256(shown_amount, 4) != toDecimal256(amount, 4)
        OR toDecimal256(shown_platform_amount, 4) != toDecimal256(platform_amount, 4)))
      ORDER BY campaign_id LIMIT ${mismatchesMax}`,
    query_params: { ...parameters, platform_digits: platformDigits },
  })
  return rows.map(row => ({ place: `campaign ${row.campaign_id}`, reason: readReason(row) }))
}

function readReason(row: ReadRow): string {
  if (row.is_public !== row.is_shown)
    return row.is_public ? 'is public and not shown' : 'is shown and not public'
  const pairs = [
    ['pledges', row.shown_pledges, row.pledges],
    ['backers', row.shown_backers, row.backers],
    ['an amount of', row.shown_amount, row.amount],
    ['a platform amount of', row.shown_platform_amount, row.platform_amount],
  ] as const
  const wrong = pairs.filter(([, shown, is]) => Number(shown) !== Number(is) || shown !== is)
  return `shows ${wrong.map(([what, shown, is]) => `${what} ${shown}, and its ledger says ${is}`).join('; ')}`
}

/** What a generation knows of something: how many versions of it, and their sum, which only grows. */
export interface Knowledge {
  kind: 'campaign' | 'pledges of campaign' | 'api key'
  id: string
  live: { known: number; versions: string }
  rebuilt: { known: number; versions: string }
}

const missingMax = 10_000
// A statement travels in the address of a request.
const idsPerStatement = 1_000

/**
 * Of which campaigns, pledges and (with `alsoKeys`) keys the live ledger knows more than the rebuilt one. What was deleted
 * long ago does not count: a compacted log forgets it. At most 10,000 of each kind.
 */
export async function missingKnowledge(
  tables: Tables,
  { live, rebuilt }: { live: Databases; rebuilt: Databases },
  scope: Scope,
  { alsoKeys }: { alsoKeys: boolean },
): Promise<Knowledge[]> {
  const { condition, parameters } = conditionOf(scope)
  const kinds: { kind: Knowledge['kind']; table: string; id: string; where: string }[] = [
    { kind: 'campaign', table: 'campaign_ledger', id: 'campaign_id', where: condition },
    { kind: 'pledges of campaign', table: 'pledge_ledger', id: 'campaign_id', where: condition },
  ]
  if (alsoKeys) kinds.push({ kind: 'api key', table: 'api_key_ledger', id: 'api_key', where: '1' })
  const missing: Knowledge[] = []
  for (const { kind, table, id, where } of kinds) {
    const rows = await tables.rows<{ id: string; live: [number, string]; rebuilt: [number, string] }>({
      query: `SELECT id, (sum(live_known), toString(sum(live_versions))) AS live,
          (sum(rebuilt_known), toString(sum(rebuilt_versions))) AS rebuilt
        FROM
        (
          SELECT ${id} AS id, count() AS live_known, sum(toUInt256(version)) AS live_versions,
            0 AS rebuilt_known, toUInt256(0) AS rebuilt_versions
          FROM ${live.model}.${table} FINAL WHERE version != ${tombstoneVersion} AND ${where} GROUP BY id
          UNION ALL
          SELECT ${id}, 0, toUInt256(0), count(), sum(toUInt256(version))
          FROM ${rebuilt.model}.${table} FINAL WHERE ${where} GROUP BY ${id}
        )
        GROUP BY id
        HAVING sum(rebuilt_known) < sum(live_known) OR sum(rebuilt_versions) < sum(live_versions)
        ORDER BY id LIMIT ${missingMax}`,
      query_params: parameters,
    })
    missing.push(
      ...rows.map(row => ({
        kind,
        id: row.id,
        live: { known: row.live[0], versions: row.live[1] },
        rebuilt: { known: row.rebuilt[0], versions: row.rebuilt[1] },
      })),
    )
  }
  return missing
}

/** What is still missing of this, now that the rebuilt generation has read on: what the live one knew then. */
export async function stillMissing(
  tables: Tables,
  generations: { live: Databases; rebuilt: Databases },
  before: readonly Knowledge[],
): Promise<Mismatch[]> {
  if (before.length === 0) return []
  const campaigns = [...new Set(before.filter(({ kind }) => kind !== 'api key').map(({ id }) => id))]
  const now = await missingKnowledge(tables, generations, { ids: [] }, { alsoKeys: true })
  for (let from = 0; from < campaigns.length; from += idsPerStatement) {
    const ids = campaigns.slice(from, from + idsPerStatement)
    now.push(...(await missingKnowledge(tables, generations, { ids }, { alsoKeys: false })))
  }
  const nameOf = ({ kind, id }: Knowledge) => `${kind} ${id}`
  const current = new Map(now.map(knowledge => [nameOf(knowledge), knowledge.rebuilt]))
  return before
    .filter(knowledge => {
      const rebuilt = current.get(nameOf(knowledge))
      if (!rebuilt) return false
      const { live } = knowledge
      return rebuilt.known < live.known || BigInt(rebuilt.versions) < BigInt(live.versions)
    })
    .map(knowledge => ({ place: nameOf(knowledge), reason: missingReason(knowledge) }))
}

function missingReason({ kind, live, rebuilt }: Knowledge): string {
  if (rebuilt.known === 0)
    return 'is known to the live model, and the history that was read does not tell of it'
  if (rebuilt.known < live.known)
    return `are ${live.known} in the live model, and ${rebuilt.known} in the history that was read`
  const is = kind === 'pledges of campaign' ? 'have' : 'has'
  return `${is} newer versions in the live model than in the history that was read`
}

function conditionOf(scope: Scope): { condition: string; parameters: Record<string, unknown> } {
  if ('ids' in scope) {
    return { condition: 'campaign_id IN {ids:Array(String)}', parameters: { ids: [...scope.ids] } }
  }
  const { after, upTo } = scope
  const bounds = [
    ...(after === null ? [] : ['campaign_id > {after:String}']),
    ...(upTo === null ? [] : ['campaign_id <= {up_to:String}']),
  ]
  return {
    condition: bounds.length === 0 ? '1' : bounds.join(' AND '),
    parameters: { ...(after !== null && { after }), ...(upTo !== null && { up_to: upTo }) },
  }
}
