/**
 * Slugs that several public campaigns have. The platform promises that there are none, but nothing enforces it between two
 * events. The API then finds the campaign with the smallest id by such a slug, and the others only in lists. So an
 * operator is told: in the status, by a metric, and once in the log.
 */
import { createNotifier } from '../runtime/notifier.ts'
import type { Sleep } from '../runtime/sleep.ts'
import type { Databases, Tables } from '../tables/port.ts'

export interface SharedSlugs {
  /** How many slugs several public campaigns have. */
  count: number
  /** Some of them, with their campaigns; the API shows the first one. */
  examples: { slug: string; campaign_ids: string[] }[]
}

const examplesMax = 5
const idsMax = 10
const lookMsMax = 30_000

/** Reads all public slugs: about 0.1 s for 400,000 campaigns. Rejects with the error of ClickHouse. */
export async function readSharedSlugs(
  tables: Pick<Tables, 'rows'>,
  { views }: Databases,
): Promise<SharedSlugs> {
  const [row] = await tables.rows<{ count: number; examples: [slug: string, ids: string[]][] }>(
    {
      query: `SELECT count() AS count, groupArray(${examplesMax})((slug, ids)) AS examples
        FROM
        (
            SELECT slug, arraySlice(arraySort(groupArray(campaign_id)), 1, ${idsMax}) AS ids
            FROM ${views}.campaigns GROUP BY slug HAVING count() > 1 ORDER BY slug
        )
        SETTINGS max_execution_time = ${lookMsMax / 1000}`,
    },
    { signal: AbortSignal.timeout(lookMsMax) },
  )
  if (!row) throw new Error('the shared slugs returned no row')
  const examples = row.examples.map(([slug, ids]) => ({ slug, campaign_ids: ids }))
  return { count: row.count, examples }
}

export interface SlugWatchDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  /** Called for every look. `isNew`: not what the look before has found. */
  onLook: (found: SharedSlugs, isNew: boolean) => void
  /** What else is looked at, of all campaigns. */
  also?: () => Promise<void>
  onError: (error: unknown) => void
  sleep: Sleep
}

export interface SlugWatch {
  /** Tells that campaigns were folded, so their slugs may have changed. */
  noteFold(): void
  /** Looks after folds, at most once a minute, until the signal aborts. It never throws: the fold does not depend on it. */
  run(signal: AbortSignal): Promise<void>
}

const restMs = 60_000
const idleMsMax = 3_600_000

export function createSlugWatch({
  tables,
  databases,
  onLook,
  also,
  onError,
  sleep,
}: SlugWatchDependencies): SlugWatch {
  const folded = createNotifier()
  let isFolded = false
  let before = JSON.stringify({ count: 0, examples: [] } satisfies SharedSlugs)

  async function look(): Promise<void> {
    isFolded = false
    try {
      const found = await readSharedSlugs(tables, databases)
      const text = JSON.stringify(found)
      onLook(found, text !== before)
      before = text
      await also?.()
    } catch (error) {
      // The next minute looks again.
      isFolded = true
      onError(error)
    }
  }

  return {
    noteFold() {
      isFolded = true
      folded.notify()
    },

    async run(signal) {
      while (!signal.aborted) {
        if (!isFolded) await folded.wait(idleMsMax, signal)
        if (!isFolded || signal.aborted) continue
        await look()
        await sleep(restMs, signal)
      }
    },
  }
}
