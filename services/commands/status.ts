import { currentDatabases, readerSettings, serverSettings, shardsOf } from '../distributed.ts'
import { withModel } from '../local/access.ts'
import { openExistingDataDirectory, type ServiceAddress } from '../local/data-directory.ts'
import { openKafkaInspector } from '../log/kafka/inspector.ts'
import { compactionWarnings } from '../log/kafka/topic-settings.ts'
import type { PartitionLag, RememberedWatermark } from '../log/port.ts'
import type { SharedSlugs } from '../projector/shared-slugs.ts'
import {
  type ProducersStatus,
  type QuarantineStatus,
  type ReachedTables,
  reachedTables,
  tablesStatus,
} from '../projector/status.ts'
import { readNextPositions } from '../projector/stored-positions.ts'
import { closing } from '../runtime/closing.ts'
import type { Config } from '../runtime/config.ts'
import { lagRecords } from '../runtime/ops/checks.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import { openTables } from '../tables/clickhouse.ts'
import { type Shard, TablesError } from '../tables/port.ts'
import { type ProjectorStop, stopText, unnoted } from '../tables/projector-stops.ts'
import { type Command, dataDirOption, type Io, printJson, readPlace } from './command.ts'
import { jsonOption } from './help.ts'
import { printable } from './printable.ts'

export const statusCommand: Command = {
  help: {
    call: 'status [--data-dir D] [--json]',
    does:
      'Shows how far the projection is and what it holds. It asks the service that runs on the data directory. If none runs, ' +
      'it opens the directory for a moment. If PLEDGEVIEW_KAFKA_BROKERS is set and --data-dir is not given, it asks Kafka and ' +
      'ClickHouse; a single projector shows its own state at /status of its ops port.',
    options: { ...dataDirOption, ...jsonOption },
    examples: ['status', 'status --json'],
    cost: 'A few queries. It changes nothing. If no service runs on the data directory, it starts ClickHouse for the queries.',
  },

  async run(args, io) {
    const { config, directory, json } = readPlace(args)
    const found =
      directory === undefined ? await distributedStatus(config) : await embeddedStatus(directory, config)
    if (json) printJson(io, found.status)
    else printStatus(found.heading, found.status, io)
    const { clickhouse, stopped } = found.status
    return clickhouse.ok && stopped === null && !found.failure ? 0 : 1
  },
}

type ShownStatus = ReachedTables & {
  projector: { members?: number; lag: PartitionLag[]; warnings: string[] }
  /** How old an answer of the API may be beside that. */
  cache_seconds_max: number
}

/** What to print: first the lines about the projectors, then the rest. */
interface Found {
  heading: [name: string, text: string][]
  /** Why the projector of the service stopped. */
  failure?: string | null
  status: ShownStatus
}

async function embeddedStatus(root: string, config: Config): Promise<Found> {
  const directory = openExistingDataDirectory(root)
  const { service, ...found } = await withModel(directory, config, { isCaughtUp: false }, async access => ({
    service: shownService(access.service),
    ...(await access.status()),
  }))
  const { state, failure } = found.projector
  // Without a service, no projector ran until this command opened the directory.
  const stopped = service || found.stopped?.is_noted ? found.stopped : null
  const status = { service, ...found, stopped, cache_seconds_max: cacheSeconds(config) }
  return {
    heading: [
      ['service', service ? `process ${service.pid}, port ${service.port}` : 'not running'],
      ['projector', failure ? `stopped: ${failure}` : state],
    ],
    failure,
    status,
  }
}

function cacheSeconds({ PLEDGEVIEW_CACHE_MS: cacheMs }: Config): number {
  return cacheMs / 1000
}

function shownService(service: ServiceAddress | undefined): { pid: number; port: number } | null {
  return service ? { pid: service.pid, port: service.port } : null
}

function distributedStatus(config: Config): Promise<Found> {
  return closing(async open => {
    const tables = open(openTables(serverSettings(config)))
    const withShards = <T>(work: (shards: readonly Shard[]) => Promise<T>): Promise<T> =>
      closing(async openShards => {
        const shards = openShards(await shardsOf(config))?.shards
        return work(shards ?? [{ tables, databases: await currentDatabases(config, tables) }])
      })
    const inspector = open(
      await openKafkaInspector(readerSettings(config), {
        logger: createLogger('error'),
        // If ClickHouse is away, the status says so, and how far the projectors had come is not known.
        positions: log => withShards(parts => readNextPositions(parts, log)).catch(noneIfAway),
      }),
    )
    const { members, lag, remembered } = await inspector.group()
    const retentionMsMin = config.PLEDGEVIEW_KAFKA_TOMBSTONE_RETENTION_MS
    const warnings = compactionWarnings(await inspector.compaction(), retentionMsMin)
    const ofTables = await reachedTables(() =>
      withShards(async shards =>
        tablesStatus({ tables, databases: await currentDatabases(config, tables), shards }),
      ),
    )
    const projector = { members, lag, warnings }
    const status: ShownStatus = { projector, ...ofTables, cache_seconds_max: cacheSeconds(config) }
    if (members === 0) status.stopped ??= absent(status.lag?.as_of, remembered)
    return { heading: [['projectors', String(members)]], status }
  })
}

/** No projector runs. The tables know since when, and if they do not answer, the group does. */
function absent(asOf: string | null | undefined, { shown }: RememberedWatermark): ProjectorStop {
  const seen = 'no projector is in the consumer group'
  if (asOf || shown > 0) return unnoted(asOf ?? new Date(shown).toISOString(), seen)
  return { at: 'the beginning', reason: `${seen}, and none has folded yet.`, is_noted: false }
}

function noneIfAway(error: unknown): Map<string, number> {
  if (error instanceof TablesError) return new Map()
  throw error
}

function printStatus(heading: Found['heading'], status: ShownStatus, io: Io): void {
  const { projector, clickhouse, rejects, misplaced } = status
  const lines = [
    ...heading,
    ...(status.stopped ? [['stopped', stopText(status.stopped)]] : []),
    ...projector.lag.map(({ topic, partition, committed, end }) => [
      `${topic}/${partition}`,
      `offset ${committed} of ${end}, ${end - committed} waiting`,
    ]),
    ...lagLine(status),
    ...(clickhouse.ok ? tablesLines(status) : [['clickhouse', whyUnread(clickhouse)]]),
    ...(rejects ? [['rejects', `${rejects.total}, ${rejects.open} open`]] : []),
    ...misplacedLines(misplaced),
    ...(status.producers ? producerLines(status.producers) : []),
    ...projector.warnings.map(warning => ['warning', warning]),
  ]
  for (const [name = '', text = ''] of lines) io.stdout.write(`${name.padEnd(14)}${printable(text)}\n`)
}

/** How far each stage is behind. */
function lagLine({ projector, lag, cache_seconds_max }: ShownStatus): [name: string, text: string][] {
  if (lag === null) return []
  const records = lagRecords(projector.lag)
  const fold = lag.fold_seconds === null ? 'nothing folded yet' : `fold ${lag.fold_seconds.toFixed(1)} s`
  const cache = `cache up to ${cache_seconds_max} s`
  return [['lag', `log ${records} records, ledger ${lag.ledger_seconds.toFixed(1)} s, ${fold}, ${cache}`]]
}

function whyUnread({ answers, detail }: { answers: boolean; detail: string }): string {
  return `${answers ? 'cannot be read' : 'does not answer'}: ${detail}`
}

function tablesLines({ fold, tables }: ShownStatus): [name: string, text: string][] {
  if (fold === null) return []
  const lastFold = fold.last_finished_at ? `${fold.last_finished_at}, ${fold.last_elapsed_ms} ms` : 'none yet'
  return [
    ['last fold', lastFold],
    ['to fold', `${fold.pending_batches} batches`],
    ...fold.quarantine.map((one): [string, string] => ['quarantine', quarantineText(one)]),
    ['campaigns', `${tables.public_campaigns} public of ${tables.known_campaigns} known`],
    ['pledges', `${tables.known_pledges} in the ledger`],
    ['active keys', String(tables.active_keys)],
    ...(tables.shared_slugs.count > 0 ? [sharedSlugsLine(tables.shared_slugs)] : []),
  ]
}

function misplacedLines(misplaced: ShownStatus['misplaced']): [string, string][] {
  if (misplaced === null || misplaced.records === 0) return []
  const { records, last_at, examples } = misplaced
  const first = `${records} records of the last 30 days are not in the partition of their key, the last at ${last_at}:`
  return [
    ['misplaced', first],
    ...examples.map((example): [string, string] => ['', example]),
    ['', 'a deletion of these keys may not last: see the partition in contracts/events/README.md'],
  ]
}

function producerLines({ versions, unknown_campaigns: unknown, oversold_tiers: oversold }: ProducersStatus) {
  const lines = versions.map(({ topic, stale, conflicting, last_at, examples }): [string, string] => [
    'versions',
    `of ${topic}, ${stale} stale and ${conflicting} conflicting in 30 days, the last at ${last_at}: ${examples.join(', ')}`,
  ])
  const since = unknown.since === null ? '' : ` since ${unknown.since}`
  const of = `${unknown.pledges} pledges of ${unknown.campaigns} campaigns that never came${since}: ${unknown.examples.join(', ')}`
  if (unknown.campaigns > 0) lines.push(['unknown', of])
  const more = `${oversold.claims} claims beyond the quantity of ${oversold.tiers} tiers: ${oversold.examples.join(', ')}`
  if (oversold.tiers > 0) lines.push(['oversold', more])
  return lines
}

function sharedSlugsLine({ count, examples }: SharedSlugs): [name: string, text: string] {
  const shown = examples.map(({ slug, campaign_ids: ids }) => `${slug} (${ids.join(', ')})`)
  const more = count > examples.length ? ', ...' : ''
  return ['shared slugs', `${count}; by each the API finds its first campaign: ${shown.join(', ')}${more}`]
}

function quarantineText({ campaign_id, since, failures, reason }: QuarantineStatus): string {
  const state = failures === 0 ? 'it is folded alone' : `changes may be missing, ${failures} failed tries`
  return `${campaign_id} since ${since} (${reason}): ${state}`
}
