/**
 * The projector log: what a run notes for later runs and for `status`. The batch log has the batches; this has what is
 * not a batch.
 */
import type { Topic } from '../../contracts/events/event.ts'
import { encodeRows } from '../tables/clickhouse/row-binary.ts'
import { iso } from '../tables/clickhouse/statements.ts'
import type { Databases, Tables } from '../tables/port.ts'

export type ProjectorNote =
  /** The run began to read, under this setting. The view `about` shows the version of the latest such run. */
  { kind: 'started'; detail: { rejectShareMax: number; version: string } } | ProducerFault

/**
 * What was wrong in a topic since the run's last such note. `misplaced`: `records` that are not in the partition of their key. `versions`:
 * `stale` and `conflicting` records (producers/versions.ts); their examples name places, no keys.
 */
export interface ProducerFault {
  kind: 'misplaced' | 'versions'
  detail: { topic: Topic; counts: Record<string, number>; examples: string[] }
}

const columns = [
  { name: 'projector', type: 'String' },
  { name: 'kind', type: 'LowCardinality(String)' },
  { name: 'detail', type: 'String' },
]

/** `projector`: names the run, as in the batch log. Throws `TablesError`. */
export async function writeNote(
  tables: Pick<Tables, 'insert'>,
  { base }: Databases,
  projector: string,
  { kind, detail }: ProjectorNote,
): Promise<void> {
  const row = [projector, kind, JSON.stringify(detail)]
  await tables.insert({ table: `${base}.projector_log`, columns, rows: encodeRows(columns, [row]) })
}

export interface MisplacedStatus {
  records: number
  /** ISO 8601; null if there are none. */
  last_at: string | null
  /** The latest, as `topic/partition key`. */
  examples: string[]
}

const misplacedDays = 30
const examplesMax = 10

/** The records of the last 30 days that are not in the partition of their key. */
export async function readMisplaced(
  tables: Pick<Tables, 'rows'>,
  { base }: Databases,
): Promise<MisplacedStatus> {
  const [found] = await tables.rows<MisplacedStatus>({
    query: `SELECT sum(JSONExtractUInt(detail, 'counts', 'records')) AS records,
              if(count() = 0, NULL, ${iso('max(noted_at)')}) AS last_at,
              arraySlice(arrayDistinct(arrayFlatten(groupArray(JSONExtract(detail, 'examples', 'Array(String)')))), 1, ${examplesMax}) AS examples
            FROM (SELECT detail, noted_at FROM ${base}.projector_log
                  WHERE kind = 'misplaced' AND noted_at > now() - INTERVAL ${misplacedDays} DAY ORDER BY noted_at DESC)`,
  })
  if (!found) throw new Error('the projector log returned no row')
  return found
}

/** Stale and conflicting records of the last 30 days, of those that were compared. */
export interface VersionsStatus {
  topic: string
  stale: number
  conflicting: number
  /** ISO 8601. */
  last_at: string
  /** The latest, as `stale topic/partition/offset`. */
  examples: string[]
}

export function readVersionFaults(
  tables: Pick<Tables, 'rows'>,
  { base }: Databases,
): Promise<VersionsStatus[]> {
  return tables.rows({
    query: `SELECT JSONExtractString(detail, 'topic') AS topic, sum(JSONExtractUInt(detail, 'counts', 'stale')) AS stale,
              sum(JSONExtractUInt(detail, 'counts', 'conflicting')) AS conflicting,
              ${iso('max(noted_at)')} AS last_at,
              arraySlice(arrayFlatten(groupArray(JSONExtract(detail, 'examples', 'Array(String)'))), 1, ${examplesMax}) AS examples
            FROM (SELECT detail, noted_at FROM ${base}.projector_log
                  WHERE kind = 'versions' AND noted_at > now() - INTERVAL ${misplacedDays} DAY ORDER BY noted_at DESC)
            GROUP BY topic ORDER BY topic`,
  })
}
