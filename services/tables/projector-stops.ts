/**
 * Why projectors stopped. A projector that ends with an error leaves its reason in the tables, so that `status`, the ops ports of all
 * processes and an alert can tell it, also when no projector runs any more. One that was killed, or that cannot reach ClickHouse, leaves
 * none. But while a projector leads, it moves the watermark, so a watermark that stands still tells that none leads, and since when.
 *
 * A projector that begins to lead writes a row without a reason. So the stop of the leader counts at once, until another one leads,
 * and a projector that stops beside the leader is no stop. No clock decides these two: it may step back.
 */
import type { Logger } from 'pino'
import { within } from '../runtime/async/sleep.ts'
import type { Config } from '../runtime/config.ts'
import { messageOf } from '../runtime/message-of.ts'
import type { Metrics } from '../runtime/ops/metrics.ts'
import { encodeRows } from './clickhouse/row-binary.ts'
import { iso } from './clickhouse/statements.ts'
import type { BaseDatabases, Databases, Tables } from './port.ts'

export interface ProjectorStop {
  /** When it stopped, ISO 8601. If no reason was left: when the watermark last moved. */
  at: string
  reason: string
  /** Whether a projector left the reason. */
  is_noted: boolean
}

/** What the tables know about the projectors. */
export interface Projection {
  stopped: ProjectorStop | null
  /** The watermark, ISO 8601; null before the first fold. */
  as_of: string | null
  /** The age of the watermark. */
  fold_seconds: number | null
}

const columns = [
  { name: 'projector', type: 'String' },
  { name: 'reason', type: 'String' },
]
const reasonLengthMax = 4_000
// ClickHouse may be the reason itself. The process must still end.
const noteMsMax = 5_000
// Longer than a broker takes to give the partition of a killed leader to another projector, once the leader's session has ended.
const handoverMs = 50_000

/** Notes the error with which this run of a projector ends. If that fails, it is only logged. */
export async function noteStop(
  tables: Pick<Tables, 'insert'>,
  { base }: Pick<Databases, 'base'>,
  projector: string,
  error: unknown,
  logger: Logger,
): Promise<void> {
  const rows = encodeRows(columns, [[projector, (messageOf(error) || 'an error').slice(0, reasonLengthMax)]])
  const table = `${base}.projector_stops`
  await within(noteMsMax, tables.insert({ table, columns, rows })).catch(cause =>
    logger.warn({ error: messageOf(cause) }, 'why the projector stopped could not be written'),
  )
}

/** Notes that this run of a projector leads the fold now, if the last one that led was another. */
export async function noteLead(
  tables: Pick<Tables, 'run'>,
  { base }: Pick<Databases, 'base'>,
  projector: string,
): Promise<void> {
  // Its time is later than that of any leader before it, also if the clock stepped back. If this comes late, the run may have stopped.
  await tables.run({
    query: `INSERT INTO ${base}.projector_stops (projector, reason, stopped_at)
            SELECT {projector:String}, '', greatest(now64(3, 'UTC'), maxIf(led.stopped_at, led.reason = '') + INTERVAL 1 MILLISECOND)
            FROM ${base}.projector_stops AS led
            HAVING argMaxIf(led.projector, led.stopped_at, led.reason = '') != {projector:String}
              AND countIf(led.projector = {projector:String} AND led.reason != '') = 0
            SETTINGS async_insert = 0`,
    query_params: { projector },
  })
}

interface StopRow {
  at: string
  at_ms: number
  reason: string
  /** Who led last; empty if nobody did in the last 30 days. */
  leader: string
  /** Whether that one has stopped. */
  led: boolean
}

/**
 * Once the last leader has stopped, none leads until another one begins to. The reason is that of the latest stop: one that was started
 * after it, and ended before it led, says what is wrong now. A stop also counts if none leads. `noneLeads` says so, or a watermark that is
 * older than a session and a handover. In the embedded form there is no session.
 */
export async function readProjection(
  tables: Pick<Tables, 'rows'>,
  { base, views }: BaseDatabases,
  {
    PLEDGEVIEW_KAFKA_SESSION_MS: sessionMs = 0,
    noneLeads = false,
  }: Partial<Pick<Config, 'PLEDGEVIEW_KAFKA_SESSION_MS'>> & { noneLeads?: boolean } = {},
): Promise<Projection> {
  const [stop] = await tables.rows<StopRow>({
    query: `WITH (SELECT argMaxIf(projector, stopped_at, reason = '') FROM ${base}.projector_stops) AS leader
            SELECT reason, ${iso('stopped_at')} AS at, toUnixTimestamp64Milli(stopped_at) AS at_ms, leader,
              max(projector = leader) OVER () AS led
            FROM ${base}.projector_stops WHERE reason != '' ORDER BY stopped_at DESC LIMIT 1`,
  })
  const [about] = await tables.rows<{ at: string; at_ms: number; age: number }>({
    query: `SELECT ${iso('as_of')} AS at, toUnixTimestamp64Milli(as_of) AS at_ms, freshness_seconds AS age FROM ${views}.about`,
  })
  const { at, at_ms: asOf, age } = about ?? { at: '', at_ms: 0, age: 0 }
  const projection = asOf === 0 ? { as_of: null, fold_seconds: null } : { as_of: at, fold_seconds: age }
  const isStill = age * 1_000 > sessionMs + handoverMs
  // An older stop is not why none leads now.
  if (stop && (stop.led || ((noneLeads || isStill || stop.leader === '') && asOf < stop.at_ms)))
    return { ...projection, stopped: { at: stop.at, reason: stop.reason, is_noted: true } }
  if (asOf === 0 || !isStill) return { ...projection, stopped: null }
  return { ...projection, stopped: unnoted(at, 'no projector has led the fold since') }
}

/** A stop without a reason, seen by this. `at`: when the watermark last moved, if it ever did. */
export function unnoted(at: string, seen: string): ProjectorStop {
  const reason = `${seen}, and none has left a reason: it was killed, it hangs, or it cannot reach ClickHouse or Kafka. Its log may tell.`
  return { at, reason, is_noted: false }
}

/** Brings the gauges up to date, for a scrape. */
export async function reportProjection({
  metrics,
  tables,
  databases,
  config,
}: {
  metrics: Metrics
  config: Config
  tables: Pick<Tables, 'rows'>
  databases: BaseDatabases
}): Promise<void> {
  const { stopped, fold_seconds } = await readProjection(tables, databases, config)
  metrics.projectorsStopped.set(stopped?.is_noted ? 1 : 0)
  if (fold_seconds !== null) metrics.stageLag.set({ stage: 'fold' }, fold_seconds)
}

/** What an operator reads. */
export function stopText({ at, reason }: Pick<ProjectorStop, 'at' | 'reason'>): string {
  return `at ${at}, because ${reason.replace(/\.?$/, '.')} Then start the projectors again (deploy/watch.md, Failures).`
}
