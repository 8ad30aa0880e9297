/**
 * Why projectors stopped. A projector that ends with an error leaves its reason in the tables, so that `status`, the ops ports of all
 * processes and an alert can tell it, also when no projector runs any more. A projector that was killed leaves none.
 */
import type { Logger } from 'pino'
import { messageOf } from '../runtime/message-of.ts'
import type { Metrics } from '../runtime/ops/metrics.ts'
import { within } from '../runtime/within.ts'
import type { Databases, Tables } from './port.ts'
import { encodeRows } from './row-binary.ts'

export interface ProjectorStop {
  /** ISO 8601. */
  at: string
  reason: string
}

const columns = [
  { name: 'projector', type: 'String' },
  { name: 'reason', type: 'String' },
]
const reasonLengthMax = 4_000
// ClickHouse may be the reason itself. The process must still end.
const noteMsMax = 5_000
// The watermark of a leader that has just stopped may still be written.
const marginSeconds = 10

/** Notes the error with which this run of a projector ends. If that fails, it is only logged. */
export async function noteStop(
  tables: Pick<Tables, 'insert'>,
  { base }: Pick<Databases, 'base'>,
  projector: string,
  error: unknown,
  logger: Logger,
): Promise<void> {
  const rows = encodeRows(columns, [[projector, messageOf(error).slice(0, reasonLengthMax)]])
  const table = `${base}.projector_stops`
  await within(noteMsMax, tables.insert({ table, columns, rows })).catch(cause =>
    logger.warn({ error: messageOf(cause) }, 'why the projector stopped could not be written'),
  )
}

/** The latest stop. `null` if there is none, or if a projector leads the fold since: the watermark moves only then. */
export async function readStop(
  tables: Pick<Tables, 'rows'>,
  { base, views }: Pick<Databases, 'base' | 'views'>,
): Promise<ProjectorStop | null> {
  const [stop] = await tables.rows<ProjectorStop & { at_ms: number }>({
    query: `SELECT reason, formatDateTime(stopped_at, '%Y-%m-%dT%H:%i:%S.%fZ') AS at, toUnixTimestamp64Milli(stopped_at) AS at_ms
            FROM ${base}.projector_stops ORDER BY stopped_at DESC LIMIT 1`,
  })
  if (!stop) return null
  const [row] = await tables.rows<{ as_of: number }>({
    query: `SELECT toUnixTimestamp64Milli(as_of) AS as_of FROM ${views}.about`,
  })
  const { at, reason, at_ms } = stop
  return (row?.as_of ?? 0) > at_ms + marginSeconds * 1_000 ? null : { at, reason }
}

/** Brings the gauge up to date, for a scrape. */
export async function reportStop({
  metrics,
  tables,
  databases,
}: {
  metrics: Metrics
  tables: Pick<Tables, 'rows'>
  databases: Pick<Databases, 'base' | 'views'>
}): Promise<void> {
  metrics.projectorsStopped.set((await readStop(tables, databases)) ? 1 : 0)
}

/** What an operator reads. */
export function stopText({ at, reason }: ProjectorStop): string {
  return `at ${at}, because ${reason.replace(/\.?$/, '.')} Then start the projectors again (deploy/watch.md, Failures).`
}
