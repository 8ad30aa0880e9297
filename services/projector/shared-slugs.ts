/**
 * Slugs that several public campaigns have. The platform promises that there are none, but nothing enforces it between two
 * events. The API then finds the campaign with the smallest id by such a slug, and the others only in lists. So an
 * operator is told: in the status, and by a metric.
 */
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
