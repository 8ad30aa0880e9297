/**
 * The projector log: what a run notes for later runs and for `status`. The batch log has the batches; this has what is
 * not a batch.
 */
import type { Position } from '../shared/event-log/port.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { encodeRows } from '../shared/tables/row-binary.ts'

export type ProjectorNote =
  /**
   * The first run of a version that notes this, before it read anything: with what the tables began. They have everything before
   * these positions, which an earlier version had committed for `group`. New tables: none.
   */
  | { kind: 'began'; detail: { positions: Position[]; group: string } }
  /** The run began to read this Kafka cluster for `group`. */
  | { kind: 'cluster'; detail: { cluster: string; group: string } }
  /** The run began to read, under this setting. The view `about` shows the version of the latest such run. */
  | { kind: 'started'; detail: { rejectShareMax: number; version: string } }
  /**
   * Everything that these partitions (`topic/partition`) had `msAgo` before the note was in the tables. And everything before
   * `positions`, which `group` had committed.
   */
  | {
      kind: 'present'
      detail: { partitions: string[]; msAgo: number; positions?: Position[]; group?: string }
    }
  /** A rebuild is over: what the log has before these positions is in the tables. */
  | { kind: 'reached'; detail: { positions: Position[]; group: string } }
  /** Records that are not in the partition of their key, since the run's last such note. */
  | { kind: 'misplaced'; detail: { records: number; examples: string[] } }

const columns = [
  { name: 'projector', type: 'String' },
  { name: 'kind', type: 'LowCardinality(String)' },
  { name: 'detail', type: 'String' },
]

/** `projector`: names the run, as in the batch log. Throws `TablesError`. */
export async function writeNote(
  tables: Pick<Tables, 'insert'>,
  { model }: Databases,
  projector: string,
  { kind, detail }: ProjectorNote,
): Promise<void> {
  const row = [projector, kind, JSON.stringify(detail)]
  await tables.insert({ table: `${model}.projector_log`, columns, rows: encodeRows(columns, [row]) })
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
  { model }: Databases,
): Promise<MisplacedStatus> {
  const [found] = await tables.rows<MisplacedStatus>({
    query: `SELECT sum(JSONExtractUInt(detail, 'records')) AS records,
              if(count() = 0, NULL, formatDateTime(max(noted_at), '%Y-%m-%dT%H:%i:%S.%fZ')) AS last_at,
              arraySlice(arrayDistinct(arrayFlatten(groupArray(JSONExtract(detail, 'examples', 'Array(String)')))), 1, ${examplesMax}) AS examples
            FROM (SELECT detail, noted_at FROM ${model}.projector_log
                  WHERE kind = 'misplaced' AND noted_at > now() - INTERVAL ${misplacedDays} DAY ORDER BY noted_at DESC)`,
  })
  if (!found) throw new Error('the projector log returned no row')
  return found
}

/** The share of rejects that these runs allowed, by projector. Runs of a program without this log are missing. */
export async function rejectSharesOf(
  tables: Pick<Tables, 'rows'>,
  { model }: Databases,
  projectors: readonly string[],
): Promise<Map<string, number>> {
  const rows = await tables.rows<{ projector: string; share: number }>({
    query: `SELECT projector, max(JSONExtractFloat(detail, 'rejectShareMax')) AS share FROM ${model}.projector_log
            WHERE kind = 'started' AND projector IN {projectors:Array(String)} GROUP BY projector`,
    query_params: { projectors: [...projectors] },
  })
  return new Map(rows.map(({ projector, share }) => [projector, share]))
}
