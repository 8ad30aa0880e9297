/**
 * Gives a command access to the model of a data directory: through the service that runs on it, or, if none runs, by
 * opening the model for the duration of the command.
 */
import { type Logger, pino } from 'pino'
import { type KeyDirectory, keyDirectory } from '../api-keys/api-keys.ts'
import { createRebuilds, type Rebuilds } from '../generations/rebuilds.ts'
import { openJournalHistory, openJournalWriter } from '../log/local/journal.ts'
import { DataDirectoryInUse } from '../log/local/lock.ts'
import type { EventWriter } from '../log/port.ts'
import { backerHasher, type HashBacker } from '../projector/ingest/backer-hash.ts'
import { type Status, statusOf } from '../projector/status.ts'
import { closing } from '../runtime/async/closing.ts'
import { retry } from '../runtime/async/retry.ts'
import type { Config } from '../runtime/config.ts'
import { createMetrics } from '../runtime/ops/metrics.ts'
import type { Databases, Tables } from '../tables/port.ts'
import { checkTablesIdentity } from '../tables/schema/identity.ts'
import {
  type DataDirectory,
  readSecrets,
  readServiceAddress,
  type Secrets,
  type ServiceAddress,
} from './data-directory.ts'
import { identityOf, openEmbeddedModel } from './model.ts'
import { openRunningTables } from './tables.ts'

export interface ModelAccess {
  /** The service that runs on the directory, if there is one. */
  service: ServiceAddress | undefined
  keys: KeyDirectory
  writer: EventWriter
  secrets: Secrets
  tables: Tables
  databases: Databases
  /** The address of its ClickHouse server. */
  clickHouse: ServiceAddress['clickhouse']
  rebuilds: Rebuilds
  status(): Promise<Status>
}

const answerMsMax = 10_000
const lockMsMax = 30_000
const logger = pino({ level: 'silent' })
const lookMs = 100

/**
 * Runs the work with access to the model, and then closes it. If another command holds the directory, it waits.
 * `isCaughtUp`: everything in the journal is folded before the work begins.
 */
export async function withModel<T>(
  directory: DataDirectory,
  config: Config,
  { isCaughtUp }: { isCaughtUp: boolean },
  work: (access: ModelAccess) => Promise<T>,
): Promise<T> {
  async function attempt(): Promise<T> {
    try {
      return await withOwnModel(directory, config, isCaughtUp, work)
    } catch (error) {
      if (!(error instanceof DataDirectoryInUse)) throw error
      const service = readServiceAddress(directory)
      if (service && isAlive(service)) return withService(directory, config, service, work)
      throw error
    }
  }
  const isRetryable = (error: unknown) => error instanceof DataDirectoryInUse
  return retry(attempt, { isRetryable, msMax: lockMsMax, pauseMsMin: lookMs })
}

async function withService<T>(
  directory: DataDirectory,
  config: Config,
  service: ServiceAddress,
  work: (access: ModelAccess) => Promise<T>,
): Promise<T> {
  const secrets = readSecrets(directory, config)
  return closing(async open => {
    const { tables, databases } = open(await openRunningTables(service.clickhouse, config))
    await checkTablesIdentity(tables, databases, identityOf(secrets, config))
    const writer = open(await openJournalWriter(directory.journal))
    const rebuilds = createEmbeddedRebuilds({
      ...{ tables, databases, config, logger, journal: directory.journal, isAlone: false },
      hashBacker: backerHasher(secrets.backerKey),
    })
    const status = () => statusFrom(service)
    const keys = keyDirectory(tables, databases)
    const clickHouse = service.clickhouse
    return work({ service, keys, writer, secrets, tables, databases, clickHouse, rebuilds, status })
  })
}

function withOwnModel<T>(
  directory: DataDirectory,
  config: Config,
  isCaughtUp: boolean,
  work: (access: ModelAccess) => Promise<T>,
): Promise<T> {
  return closing(async open => {
    const model = open(await openEmbeddedModel({ directory, config, metrics: createMetrics(), logger }))
    const rebuilds = createEmbeddedRebuilds({
      ...model,
      journal: directory.journal,
      isAlone: true,
      config,
      logger,
    })
    if (isCaughtUp) await model.whenDrained()
    return work({ ...model, service: undefined, rebuilds, status: () => statusOf(model) })
  })
}

/** Whether the process is alive. A killed process leaves its address behind. */
export function isAlive({ pid }: Pick<ServiceAddress, 'pid'>): boolean {
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

/*
 * Rebuilds of an embedded model. They run in the process of their command, over the same ClickHouse server and the same journal as
 * the service. So they take no time from its answers, and end with their command.
 */

export interface EmbeddedRebuildsDependencies {
  tables: Tables
  databases: Databases
  /** The file of the event log. */
  journal: string
  hashBacker: HashBacker
  /** Whether no service runs on the tables. */
  isAlone: boolean
  config: Config
  logger: Logger
}

export function createEmbeddedRebuilds({
  journal,
  hashBacker,
  ...dependencies
}: EmbeddedRebuildsDependencies): Rebuilds {
  return createRebuilds({
    ...dependencies,
    decoding: async () => ({ hashBacker }),
    withHistory: work => closing(async open => work(open(await openJournalHistory(journal)))),
  })
}
