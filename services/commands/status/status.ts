import type { ServersAccess } from '../../distributed/access.ts'
import { readerSettings } from '../../distributed/settings.ts'
import type { EmbeddedAccess } from '../../embedded/access.ts'
import { type KafkaInspectorDependencies, openKafkaInspector } from '../../log/kafka/inspector.ts'
import { compactionWarnings } from '../../log/kafka/topic-settings.ts'
import { lagRecords, type PartitionLag, type RememberedWatermark } from '../../log/port.ts'
import { readPositions } from '../../projector/positions/positions.ts'
import type { SharedSlugs } from '../../projector/producers/claims.ts'
import {
  type ProducersStatus,
  type QuarantineStatus,
  type ReachedTables,
  reachedTables,
  tablesStatus,
} from '../../projector/status.ts'
import { closing } from '../../runtime/async/closing.ts'
import type { Config } from '../../runtime/config.ts'
import { messageOf } from '../../runtime/message-of.ts'
import type { Check } from '../../runtime/ops/checks.ts'
import { createLogger } from '../../runtime/ops/logger.ts'
import { type Tables, TablesError } from '../../tables/port.ts'
import { type ProjectorStop, stopText, unnoted } from '../../tables/projector-stops.ts'
import { type Command, commonOptions, type Io, printJson, printLines, readArguments } from '../command.ts'
import { onModel } from '../on-model.ts'

export const statusCommand: Command = {
  help: {
    call: 'status [--data-dir D] [--json]',
    does:
      'Shows how far the projection is and what it holds. It asks the service that runs on the data directory. If none runs, ' +
      'it opens the directory for a moment. If PLEDGEVIEW_KAFKA_BROKERS is set and --data-dir is not given, it asks Kafka and ' +
      'ClickHouse; a single projector shows its own state at /status of its ops port.',
    options: commonOptions,
    examples: ['status', 'status --json'],
    cost: 'A few queries. It changes nothing. If no service runs on the data directory, it starts ClickHouse for the queries.',
  },

  async run(args, io) {
    const { values } = readArguments(args, commonOptions)
    const found = await onModel(
      values['data-dir'],
      model => (model.isEmbedded ? embeddedStatus(model) : serversStatus(model)),
      { asksService: true },
    )
    if (values.json) printJson(io, found.status)
    else printStatus(found.heading, found.status, io)
    const { clickhouse, kafka, stopped } = found.status
    return clickhouse.ok && kafka?.ok !== false && stopped === null && !found.failure ? 0 : 1
  },
}

type ShownStatus = ReachedTables & {
  projector: { members?: number | null; lag: PartitionLag[]; warnings: string[] }
  /** In the distributed form. If Kafka does not answer, `members` is null and there is no lag. */
  kafka?: Check
  /** How old an answer of the API may be beside that. */
  cache_seconds_max: number
}

/** What to print: first the lines about the projectors, then the rest. */
interface Found {
  heading: string[][]
  /** Why the projector of the service stopped. */
  failure?: string | null
  status: ShownStatus
}

async function embeddedStatus(access: EmbeddedAccess): Promise<Found> {
  const service = access.service ? { pid: access.service.pid, port: access.service.port } : null
  const found = await access.status()
  const { state, failure } = found.projector
  // Without a service, no projector ran until this command opened the directory.
  const stopped = service || found.stopped?.is_noted ? found.stopped : null
  const status = { service, ...found, stopped, cache_seconds_max: access.config.PLEDGEVIEW_CACHE_MS / 1000 }
  return {
    heading: [
      ['service', service ? `process ${service.pid}, port ${service.port}` : 'not running'],
      ['projector', failure ? `stopped: ${failure}` : state],
    ],
    failure,
    status,
  }
}

async function serversStatus({ config, tables, databases, ...model }: ServersAccess): Promise<Found> {
  // Asked once. Each of the statements would wait for a server that hangs as long as a batch does.
  let asked: Promise<unknown> | undefined
  const shards = async () => {
    asked ??= answerOf(tables, AbortSignal.timeout(answerMsMax))
    await asked
    return model.shards()
  }
  const log = await logStatus(config, async place => (await readPositions(await shards(), place)).ofLog)
  const { members } = log.projector
  const ofTables = await reachedTables(async () =>
    tablesStatus({ tables, databases, config, shards: await shards(), noneLeads: members === 0 }),
  )
  const { remembered, ...ofLog } = log
  const status: ShownStatus = { ...ofLog, ...ofTables, cache_seconds_max: config.PLEDGEVIEW_CACHE_MS / 1000 }
  if (members === 0 && remembered) status.stopped ??= absent(status.lag?.as_of, remembered)
  return { heading: members === null ? [] : [['projectors', String(members)]], status }
}

const answerMsMax = 10_000

async function answerOf(tables: Tables, signal: AbortSignal): Promise<void> {
  try {
    await tables.rows({ query: 'SELECT 1' }, { signal })
  } catch (cause) {
    if (!signal.aborted) throw cause
    throw new TablesError(`no answer within ${answerMsMax} ms`, { retryable: true, cause })
  }
}

/** What Kafka reports, or why it reports nothing. */
async function logStatus(config: Config, positions: KafkaInspectorDependencies['positions']) {
  try {
    return await closing(async open => {
      const inspector = open(
        await openKafkaInspector(
          { ...readerSettings(config), retriesMax: 2 },
          // If ClickHouse is away, how far the projectors had come is not known. The status of the tables says why.
          { logger: createLogger('error'), positions: log => positions(log).catch(() => new Map()) },
        ),
      )
      const { members, lag, remembered } = await inspector.group()
      const retentionMsMin = config.PLEDGEVIEW_KAFKA_TOMBSTONE_RETENTION_MS
      const warnings = compactionWarnings(await inspector.compaction(), retentionMsMin)
      return { projector: { members, lag, warnings }, kafka: { ok: true, detail: 'answers' }, remembered }
    })
  } catch (error) {
    const detail = `${messageOf(error)} (${config.PLEDGEVIEW_KAFKA_BROKERS?.join(', ')})`
    return {
      projector: { members: null, lag: [], warnings: [] },
      kafka: { ok: false, detail },
      remembered: undefined,
    }
  }
}

/** No projector runs. The tables know since when, and if they do not answer, the group does. */
function absent(asOf: string | null | undefined, { shown }: RememberedWatermark): ProjectorStop {
  const seen = 'no projector is in the consumer group'
  if (asOf || shown > 0) return unnoted(asOf ?? new Date(shown).toISOString(), seen)
  return { at: 'the beginning', reason: `${seen}, and none has folded yet.`, is_noted: false }
}

/** Prints the lines about the projectors, and then the rest. */
export function printStatus(heading: Found['heading'], status: ShownStatus, io: Pick<Io, 'stdout'>): void {
  const { projector, clickhouse, kafka, rejects, misplaced } = status
  printLines(io, 14, [
    ...heading,
    ...(kafka?.ok === false ? [['kafka', `does not answer: ${kafka.detail}`]] : []),
    ...(clickhouse.ok ? [] : [['clickhouse', whyUnread(clickhouse)]]),
    ...(status.stopped ? [['stopped', stopText(status.stopped)]] : []),
    ...partitionLines(status),
    ...lagLine(status),
    ...(clickhouse.ok ? tablesLines(status) : []),
    ...(rejects ? [['rejects', rejectsText(rejects)]] : []),
    ...misplacedLines(misplaced),
    ...(status.producers ? producerLines(status.producers) : []),
    ...projector.warnings.map(warning => ['warning', warning]),
  ])
}

/** Partitions with records that wait. In the distributed form their positions stand in ClickHouse. */
function partitionLines({ projector, kafka, clickhouse }: ShownStatus): string[][] {
  const isKnown = kafka === undefined || clickhouse.ok
  return projector.lag
    .filter(({ committed, end }) => end > committed)
    .map(({ topic, partition, committed, end }) => [
      `${topic}/${partition}`,
      isKnown ? `offset ${committed} of ${end}, ${end - committed} waiting` : `ends at ${end}`,
    ])
}

function rejectsText({ total, open }: { total: number; open: number }): string {
  return `${total}, ${open} open${open > 0 ? '; pledgeview rejects list --by-reason tells why' : ''}`
}

/** How far each stage is behind. */
function lagLine({ projector, kafka, lag, cache_seconds_max }: ShownStatus): string[][] {
  if (lag === null) return []
  const log = kafka?.ok === false ? 'not known' : `${lagRecords(projector.lag)} records`
  const fold = lag.fold_seconds === null ? 'nothing folded yet' : `fold ${lag.fold_seconds.toFixed(1)} s`
  const cache = `cache up to ${cache_seconds_max} s`
  return [['lag', `log ${log}, ledger ${lag.ledger_seconds.toFixed(1)} s, ${fold}, ${cache}`]]
}

function whyUnread({ answers, detail }: { answers: boolean; detail: string }): string {
  return `${answers ? 'cannot be read' : 'does not answer'}: ${detail}`
}

function tablesLines({ fold, tables }: ShownStatus): string[][] {
  if (fold === null) return []
  const lastFold = fold.last_finished_at ? `${fold.last_finished_at}, ${fold.last_elapsed_ms} ms` : 'none yet'
  return [
    ['last fold', lastFold],
    ['to fold', `${fold.pending_batches} batches`],
    ...fold.quarantine.map(one => ['quarantine', quarantineText(one)]),
    ['campaigns', `${tables.public_campaigns} public of ${tables.known_campaigns} known`],
    ['pledges', `${tables.known_pledges} in the ledger`],
    ['active keys', String(tables.active_keys)],
    ...(tables.shared_slugs.count > 0 ? [sharedSlugsLine(tables.shared_slugs)] : []),
  ]
}

function misplacedLines(misplaced: ShownStatus['misplaced']): string[][] {
  if (misplaced === null || misplaced.records === 0) return []
  const { records, last_at, examples } = misplaced
  const first = `${records} records of the last 30 days are not in the partition of their key, the last at ${last_at}:`
  return [
    ['misplaced', first],
    ...examples.map(example => ['', example]),
    ['', 'a deletion of these keys may not last: see the partition in contracts/events/README.md'],
  ]
}

function producerLines({ versions, unknown_campaigns: unknown, oversold_tiers: oversold }: ProducersStatus) {
  const lines = versions.map(({ topic, stale, conflicting, last_at, examples }) => [
    'versions',
    `of ${topic}, at least ${stale} stale and ${conflicting} conflicting in 30 days, the last at ${last_at}: ${examples.join(', ')}`,
  ])
  const since = unknown.since === null ? '' : `, these since ${unknown.since}`
  const of = `${unknown.pledges} pledges of ${unknown.campaigns} campaigns that never came: ${unknown.examples.join(', ')}${since}`
  if (unknown.campaigns > 0) lines.push(['unknown', of])
  const more = `${oversold.claims} claims beyond the quantity of ${oversold.tiers} tiers: ${oversold.examples.join(', ')}`
  if (oversold.tiers > 0) lines.push(['oversold', more])
  return lines
}

function sharedSlugsLine({ count, examples }: SharedSlugs): string[] {
  const shown = examples.map(({ slug, campaign_ids: ids }) => `${slug} (${ids.join(', ')})`)
  const more = count > examples.length ? ', ...' : ''
  return ['shared slugs', `${count}; by each the API finds its first campaign: ${shown.join(', ')}${more}`]
}

function quarantineText({ campaign_id, since, failures, reason }: QuarantineStatus): string {
  const state = failures === 0 ? 'it is folded alone' : `changes may be missing, ${failures} failed tries`
  return `${campaign_id} since ${since} (${reason}): ${state}`
}
