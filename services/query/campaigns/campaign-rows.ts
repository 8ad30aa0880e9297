/**
 * Reads the rows of a page by id.
 *
 * With a list index, a row is cached as the text of a page, until the index shows that its campaign changed, or for `keptMsMax`.
 * Rows that several requests miss are read in one statement. So pages of thousands of different lists do not cause as many statements.
 */
import { LRUCache } from 'lru-cache'
import { createFairYield } from '../../runtime/async/fair-turns.ts'
import { yieldToEventLoop } from '../../runtime/async/sleep.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { fewRows, timeBound } from '../../tables/clickhouse/statements.ts'
import type { Databases, Statement, Tables } from '../../tables/port.ts'
import type { OnLookup } from '../cache/cache.ts'
import { keptMsMax } from '../forgetting.ts'
import type { FollowedIndex, ListFollower } from '../lists/list-follower.ts'
import { projectRowOf, type WrittenCampaign, writeCampaign } from './campaign-fields.ts'

export type CampaignRows = ReturnType<typeof createCachedCampaignRows>

export interface CampaignRowsOptions {
  statementMsMax: number
  /** Memory limit for the cached rows. */
  bytesMax: number
  /** Called for the rows of a page: how many were cached, and how many were not. */
  onLookup?: OnLookup | undefined
}

// ClickHouse bounds the length of a parameter: 128 KiB by default.
const idsMax = 500
const idsCharsMax = 40_000
// Presenting rows takes most of the time of a request, and a thousand requests may have waited for the same rows.
const yieldAfterMs = 5

/**
 * Creates rows that are cached as long as the index shows that they are current. Without an index every page reads
 * them.
 */
export function createCachedCampaignRows(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  follower: ListFollower,
  { statementMsMax, bytesMax, onLookup }: CampaignRowsOptions,
  { monotonicMs: now }: Pick<Runtime, 'monotonicMs'>,
) {
  const noRows = () =>
    new LRUCache<string, WrittenCampaign>({
      maxSize: bytesMax,
      // In memory a character takes one or two bytes; the object around the strings is small.
      sizeCalculation: ({ before, after }) => 2 * (before.length + after.length) + 512,
      ...{ ttl: keptMsMax, ttlResolution: 0, perf: { now } },
    })
  let kept = noRows()
  const fairYield = createFairYield({ msMax: yieldAfterMs, now })
  const loadBatched = inBatches(async ids => {
    // Rows of a statement that began before a purge are kept where nobody reads them any more.
    const keptNow = kept
    const rows = await load(ids)
    for (const row of rows.values()) if (!(row instanceof Error)) keptNow.set(row.id, row)
    return rows
  })

  async function load(ids: readonly string[]): Promise<RowsById> {
    if (ids.length === 0) return new Map()
    const rows = await tables.rows<CampaignPageRow>(projectsStatement(ids, databases, statementMsMax))
    return new Map(rows.map(row => [row.campaign_id, written(row)]))
  }

  /**
   * The cached row, if it has the same change time as the index. It may differ in both directions, because a clock may
   * be set back.
   */
  function current(id: string, { index }: FollowedIndex): WrittenCampaign | undefined {
    const found = kept.get(id)
    return found?.updatedAt === index.updatedAt(id) ? found : undefined
  }

  return {
    /**
     * The rows of these campaigns in the order of the ids, each with every change up to `asOf` (ISO 8601). A campaign
     * that is no longer public is left out. Rejects if the schema refuses one of them.
     */
    async read(ids: readonly string[], asOf: string): Promise<WrittenCampaign[]> {
      const followed = await follower.current(Date.parse(asOf))
      if (!followed) return inOrder(ids, await load(ids))
      const rows = new Map<string, Row | undefined>(ids.map(id => [id, current(id, followed)]))
      const missing = ids.filter(id => rows.get(id) === undefined)
      onLookup?.(true, ids.length - missing.length)
      onLookup?.(false, missing.length)
      if (missing.length > 0) {
        const loaded = await loadBatched(missing)
        for (const id of missing) rows.set(id, loaded.get(id))
      }
      await fairYield()
      return inOrder(ids, rows)
    },

    forgetOld: () => kept.purgeStale(),

    forgetAll(): void {
      kept = noRows()
    },
  }
}

type Row = WrittenCampaign | Error
type RowsById = ReadonlyMap<string, Row>

/** A row that cannot be shown fails the pages that have it, and not those whose rows were read with it. */
function written({ campaign_id, list_fields }: CampaignPageRow): Row {
  try {
    return writeCampaign(projectRowOf(list_fields))
  } catch (error) {
    return new Error(`the row of campaign ${campaign_id} cannot be shown`, { cause: error })
  }
}

/** Throws if one of them is an error. */
function inOrder(ids: readonly string[], rows: ReadonlyMap<string, Row | undefined>): WrittenCampaign[] {
  return ids.flatMap(id => {
    const row = rows.get(id)
    if (row instanceof Error) throw row
    return row ?? []
  })
}

const noop = () => undefined

/**
 * Loads one batch at a time. Ids that are requested meanwhile form the next batch, up to a limit of ids and characters.
 */
function inBatches(
  loadMany: (ids: readonly string[]) => Promise<RowsById>,
): (ids: readonly string[]) => Promise<RowsById> {
  let next: { ids: Set<string>; chars: number; loading: Promise<RowsById> } | undefined
  let last: Promise<unknown> = Promise.resolve()

  async function loadAfter(before: Promise<unknown>, ids: ReadonlySet<string>): Promise<RowsById> {
    await Promise.all([before, yieldToEventLoop()])
    if (next?.ids === ids) next = undefined
    return loadMany([...ids])
  }

  return ids => {
    const chars = ids.reduce((sum, id) => sum + id.length, 0)
    if (next && (next.ids.size + ids.length > idsMax || next.chars + chars > idsCharsMax)) next = undefined
    if (next === undefined) {
      const batch = new Set<string>()
      next = { ids: batch, chars: 0, loading: loadAfter(last, batch) }
      // Without the rows, so that the last batch does not stay in memory until the next one.
      last = next.loading.then(noop, noop)
    }
    next.chars += chars
    for (const id of ids) next.ids.add(id)
    return next.loading
  }
}

/** A public campaign for a page. `list_fields`: see `projectRowOf`. */
export interface CampaignPageRow {
  campaign_id: string
  list_fields: string
}

/**
 * The page fields of these campaigns, in no particular order: rows of type `CampaignPageRow`. Ids that are not public are
 * left out.
 */
export function projectsStatement(ids: readonly string[], databases: Databases, msMax: number): Statement {
  return {
    query: `SELECT campaign_id, list_fields
FROM ${databases.read}.campaign_pages
WHERE campaign_id IN {ids:Array(String)}
SETTINGS ${fewRows}, ${timeBound(msMax)}`,
    query_params: { ids },
  }
}
