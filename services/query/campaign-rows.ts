/**
 * The rows that pages are made of, read by id.
 *
 * With a list index, a row that was read once serves until the index says that its campaign changed, and what several
 * requests lack is read together: so pages of thousands of different lists do not become as many statements.
 */
import { LRUCache } from 'lru-cache'
import { nextTurn } from '../shared/next-turn.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import type { FollowedIndex, ListFollower } from './list-follower.ts'
import { presentTimestamp } from './present.ts'
import type { ProjectRow } from './rows.ts'
import { projectsStatement } from './statements.ts'
import { createTurns } from './turns.ts'

export interface CampaignRows {
  /**
   * The rows of these campaigns in the order of the ids, each with every change up to `asOf` (ISO 8601). A campaign that
   * is not public any more is left out.
   */
  read(ids: readonly string[], asOf: string): Promise<ProjectRow[]>
}

export interface CampaignRowsDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  statementMsMax: number
}

/** Rows that are read for every page anew. */
export function createSqlCampaignRows({
  tables,
  databases,
  statementMsMax,
}: CampaignRowsDependencies): CampaignRows {
  return {
    async read(ids) {
      if (ids.length === 0) return []
      const rows = await tables.rows<ProjectRow>(projectsStatement(ids, databases, statementMsMax))
      return inOrder(ids, new Map(rows.map(row => [row.campaign_id, row])))
    },
  }
}

export interface CachedCampaignRowsDependencies extends CampaignRowsDependencies {
  follower: ListFollower
  /** Bound on the rows that are kept. */
  bytesMax: number
}

// The ids of one statement travel in its address.
const idsMax = 500
// What is made of rows takes most of a request's time, and a thousand may have waited for the same ones.
const turnMsMax = 10

/** Rows that are kept while the index says that they are current; without an index they are read anew. */
export function createCachedCampaignRows(dependencies: CachedCampaignRowsDependencies): CampaignRows {
  const { follower, bytesMax } = dependencies
  const anew = createSqlCampaignRows(dependencies)
  const kept = new LRUCache<string, KeptRow>({ maxSize: bytesMax, sizeCalculation: ({ bytes }) => bytes })
  const turn = createTurns({ msMax: turnMsMax, now: () => performance.now() })
  const load = inBatches(async ids => {
    const rows = await anew.read(ids, '')
    for (const row of rows) kept.set(row.campaign_id, keptRow(row))
    return new Map(rows.map(row => [row.campaign_id, row]))
  })

  /** A row that changed at another moment than the index says is older, or newer than the clock that was set back. */
  function current(id: string, { index }: FollowedIndex): ProjectRow | undefined {
    const found = kept.get(id)
    const updatedAt = index.updatedAt(id)
    return found && found.updatedAt === updatedAt ? found.row : undefined
  }

  return {
    async read(ids, asOf) {
      const followed = await follower.current(Date.parse(asOf))
      if (!followed) return anew.read(ids, asOf)
      const rows = new Map<string, ProjectRow>()
      const lacking: string[] = []
      for (const id of ids) {
        const row = current(id, followed)
        if (row) rows.set(id, row)
        else lacking.push(id)
      }
      if (lacking.length > 0) {
        const loaded = await load(lacking)
        for (const id of lacking) {
          const row = loaded.get(id)
          if (row) rows.set(id, row)
        }
      }
      await turn()
      return inOrder(ids, rows)
    },
  }
}

interface KeptRow {
  row: ProjectRow
  /** Unix ms. */
  updatedAt: number
  bytes: number
}

function keptRow(row: ProjectRow): KeptRow {
  return {
    row,
    updatedAt: Date.parse(presentTimestamp(row.updated_at)),
    // Strings of JSON are a byte or two a character in memory; the object around them is small.
    bytes: 2 * JSON.stringify(row).length + 512,
  }
}

function inOrder(ids: readonly string[], rows: RowsById): ProjectRow[] {
  return ids.flatMap(id => rows.get(id) ?? [])
}

type RowsById = ReadonlyMap<string, ProjectRow>

/** Loads one batch after the other; what is asked for meanwhile makes up the next, of at most `idsMax` ids. */
function inBatches(
  loadMany: (ids: readonly string[]) => Promise<RowsById>,
): (ids: readonly string[]) => Promise<RowsById> {
  let next: { ids: Set<string>; loading: Promise<RowsById> } | undefined
  let last: Promise<unknown> = Promise.resolve()

  function startBatch() {
    const ids = new Set<string>()
    const batch = { ids, loading: loadAfter(last, ids) }
    last = batch.loading.catch(() => undefined)
    return batch
  }

  async function loadAfter(before: Promise<unknown>, ids: ReadonlySet<string>): Promise<RowsById> {
    await Promise.all([before, nextTurn()])
    if (next?.ids === ids) next = undefined
    return loadMany([...ids])
  }

  return ids => {
    if (next === undefined || next.ids.size + ids.length > idsMax) next = startBatch()
    for (const id of ids) next.ids.add(id)
    return next.loading
  }
}
