/**
 * Gives a command access to the model of a data directory: through the service that runs on it, or, if none runs, by
 * opening the model for the duration of the command.
 */
import { pino } from 'pino'
import { encodeState, type StateEncoder } from '../../contracts/events/codec.ts'
import { createRebuilds, type Rebuilds } from '../generations/rebuilds.ts'
import { openJournalHistory, openJournalWriter } from '../log/local/journal.ts'
import { DataDirectoryInUse } from '../log/local/lock.ts'
import type { EventWriter, PartitionLag } from '../log/port.ts'
import { backerHasher } from '../projector/ingest/backer-hash.ts'
import { type Status, statusOf } from '../projector/status.ts'
import { closing, type Open } from '../runtime/async/closing.ts'
import { retry } from '../runtime/async/retry.ts'
import type { Config } from '../runtime/config.ts'
import { createMetrics } from '../runtime/ops/metrics.ts'
import { inSession, openTables, type ServerTables } from '../tables/clickhouse/clickhouse.ts'
import { type FollowedDatabases, followedDatabases } from '../tables/generation-log.ts'
import { defaultNames, type Shard, type Tables } from '../tables/port.ts'
import { checkTablesIdentity } from '../tables/schema/identity.ts'
import { type DataDirectory, readSecrets, type ServiceAddress, serviceAddress } from './data-directory.ts'
import { identityOf, liveConsumer, openEmbeddedModel } from './model.ts'
import { childSettings } from './tables.ts'

/**
 * What a command works with, in both forms: on a data directory, or on Kafka and ClickHouse (distributed/access.ts). A part that is
 * a function opens when it is first called.
 */
export interface ModelAccess {
  config: Config
  tables: Tables
  /** On servers the generation is only known once `shards` or `follow` was called. */
  databases: FollowedDatabases
  /** Those that have the rows of the tables, with the current generation. */
  shards(): Promise<readonly Shard[]>
  /** The tables in a session of its own. */
  session(): ServerTables
  writer(): Promise<EventWriter>
  /** The encoder for what is written. */
  encoder(): Promise<StateEncoder>
  /** Throws if the tables began with another value. */
  secret(name: SecretName): Promise<string>
  lag(): Promise<PartitionLag[]>
  rebuilds(): Promise<Rebuilds>
}

type SecretName = 'PLEDGEVIEW_KEY_PEPPER' | 'PLEDGEVIEW_PORTAL_KEY'

export interface EmbeddedAccess extends ModelAccess {
  isEmbedded: true
  directory: DataDirectory
  /** The service that runs on the directory, if there is one. */
  service: ServiceAddress | undefined
  status(): Promise<Status>
}

const answerMsMax = 10_000
const lockMsMax = 30_000
const logger = pino({ level: 'silent' })
const lookMs = 100

/** What the work needs of a data directory. */
export interface DirectoryNeeds {
  /**
   * If no service runs on the directory, everything in the journal is folded before the work begins. Beside a service, as on servers, the
   * work begins with what that has folded: it may be behind, and new events keep coming. Default: false.
   */
  isCaughtUp?: boolean
  /** Beside a service the work asks only that, which answers also while ClickHouse is away. Default: ClickHouse, too. */
  asksService?: boolean
}

/**
 * Runs the work with access to the model, and then closes it. If another command holds the directory, it waits for up to 30 s, and then
 * throws `DataDirectoryInUse`.
 */
export async function withModel<T>(
  directory: DataDirectory,
  config: Config,
  needs: DirectoryNeeds,
  work: (access: EmbeddedAccess) => Promise<T>,
): Promise<T> {
  const attempt = () => closing(async open => work(await openAccess(directory, config, needs, open)))
  const isRetryable = (error: unknown) => error instanceof DataDirectoryInUse
  return retry(attempt, { isRetryable, msMax: lockMsMax, pauseMsMin: lookMs })
}

async function openAccess(
  directory: DataDirectory,
  config: Config,
  { isCaughtUp = false, asksService = false }: DirectoryNeeds,
  open: Open,
): Promise<EmbeddedAccess> {
  async function openOwn() {
    const model = open(await openEmbeddedModel({ directory, config, metrics: createMetrics(), logger }))
    if (isCaughtUp) await model.whenDrained()
    return { ...model, writer: async () => model.writer, service: undefined, status: () => statusOf(model) }
  }

  async function openBeside(service: ServiceAddress) {
    const secrets = readSecrets(directory, config)
    const { clickhouse: clickHouse } = service
    const tables = open(openTables(childSettings(clickHouse, config)))
    const databases = followedDatabases(defaultNames)
    if (!asksService) {
      await databases.follow(tables)
      await checkTablesIdentity(tables, databases, identityOf(secrets, config))
    }
    let opened: Promise<EventWriter> | undefined
    const writer = () => (opened ??= openJournalWriter(directory.journal).then(open))
    return { tables, databases, writer, secrets, clickHouse, service, status: () => statusFrom(service) }
  }

  const model = await openOwn().catch((error: unknown) => {
    const service = error instanceof DataDirectoryInUse && serviceAddress.read(directory)
    if (!service || !isAlive(service)) throw error
    return openBeside(service)
  })
  const { tables, databases, writer, secrets, clickHouse, service, status } = model
  return {
    ...{ isEmbedded: true, directory, config, service, status, tables, databases, writer },
    shards: async () => [{ tables, databases }],
    session: () => open(openTables(inSession(childSettings(clickHouse, config)))),
    encoder: async () => encodeState,
    secret: async name => identityOf(secrets, config)[name],
    lag: async () => (await status()).projector.lag,
    // They run in the process of their command. So they take no time from the answers of the service, and end with their command.
    rebuilds: async () =>
      createRebuilds({
        ...{ tables, databases, config, logger, isAlone: service === undefined },
        decoding: async () => ({ hashBacker: backerHasher(secrets.backerKey) }),
        withHistory: work =>
          closing(async open => work(open(await openJournalHistory(directory.journal, liveConsumer)))),
      }),
  }
}

/** Whether the process is alive. A killed process leaves its address behind. */
function isAlive({ pid }: Pick<ServiceAddress, 'pid'>): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function statusFrom({ pid, ops_url: url }: ServiceAddress): Promise<Status> {
  const response = await fetch(`${url}/status`, { signal: AbortSignal.timeout(answerMsMax) }).catch(
    (error: Error) => {
      throw new Error(`the service (process ${pid}) does not answer at ${url}: ${error.message}`)
    },
  )
  if (!response.ok) throw new Error(`the service answered /status with ${response.status}`)
  return (await response.json()) as Status
}
