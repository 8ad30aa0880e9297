/**
 * The embedded read model: journal, in-process ClickHouse and the projector between them, under one lock.
 *
 * `npm start` puts the API on top; commands that need the tables while no service runs open it alone.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createProjectorService, type ProjectorService } from '../projector/service.ts'
import { completeExchange } from '../rebuild/exchange.ts'
import { type KeyDirectory, keyDirectory } from '../shared/api-keys.ts'
import { lagRecords } from '../shared/checks.ts'
import type { Config } from '../shared/config.ts'
import { openJournalReader, openJournalWriter } from '../shared/event-log/journal/journal.ts'
import { lockDataDirectory } from '../shared/event-log/journal/lock.ts'
import type { EventWriter } from '../shared/event-log/port.ts'
import type { Metrics } from '../shared/metrics.ts'
import { migrate } from '../shared/tables/migrate.ts'
import { type Databases, defaultDatabases, type Tables } from '../shared/tables/port.ts'
import { type DataDirectory, holdIdentity, readSecrets, type Secrets } from './data-directory.ts'

/** Whose positions in the journal the projector's are. */
export const liveConsumer = 'projector'

export interface EmbeddedModel {
  tables: Tables
  databases: Databases
  writer: EventWriter
  projector: ProjectorService
  secrets: Secrets
  keys: KeyDirectory
  /** Names this run in the batch log. */
  run: string
  /** Settles when the projector has stopped: with its error, or with `undefined` after `close`. */
  stopped: Promise<Error | undefined>
  /** Resolves once everything that is in the journal is folded. Throws where the projector stops before. */
  whenDrained(onProgress?: (waitingRecords: number) => void): Promise<void>
  close(): Promise<void>
}

export interface EmbeddedModelDependencies {
  directory: DataDirectory
  config: Config
  metrics: Metrics
  logger: Logger
}

/** Takes the directory, brings its tables up to date and starts projecting. Throws where another process holds it. */
export async function openEmbeddedModel({
  directory,
  config,
  metrics,
  logger,
}: EmbeddedModelDependencies): Promise<EmbeddedModel> {
  const closers: (() => unknown)[] = []
  async function close(): Promise<void> {
    for (const closer of closers.splice(0).reverse()) await closer()
  }

  try {
    const lock = lockDataDirectory(directory.root)
    closers.push(() => lock.release())
    const secrets = readSecrets(
      directory,
      { keyPepper: config.PLEDGEVIEW_KEY_PEPPER, backerKey: config.PLEDGEVIEW_BACKER_KEY },
      randomBytes,
    )
    holdIdentity(directory, secrets, config.PLEDGEVIEW_PLATFORM_CURRENCY)
    const databases = defaultDatabases
    // Loaded when it is used: half a gigabyte that the distributed commands do without, as their image does.
    const { openChdbTables } = await import('../shared/tables/chdb.ts')
    const tables = openChdbTables(directory.tables)
    closers.push(() => tables.close())
    await migrate(tables, databases)
    const writer = await openJournalWriter(directory.journal)
    closers.push(() => writer.close())
    const reader = await openJournalReader(directory.journal, { consumer: liveConsumer })
    closers.push(() => reader.close())

    const run = `embedded-${randomUUID()}`
    const projector = createProjectorService({
      reader,
      tables,
      databases,
      config,
      backerKey: secrets.backerKey,
      run,
      settleMs: 0, // an earlier holder's statements died with its process: the lock says so
      // So did a rebuild that held the fold, unless it is our own.
      respectsHold: holder => holder.includes(run),
      afterHold: () => completeExchange(tables, databases),
      metrics,
      logger,
      now: Date.now,
      monotonicMs: () => performance.now(),
      random: Math.random,
    })
    const stop = new AbortController()
    const stopped = projector.run(stop.signal).then(
      () => undefined,
      (error: Error) => error,
    )
    closers.push(async () => {
      stop.abort()
      await stopped
    })
    return {
      tables,
      databases,
      writer,
      projector,
      secrets,
      keys: keyDirectory(tables, databases),
      run,
      stopped,
      whenDrained: onProgress => whenDrained(projector, onProgress),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function whenDrained(
  projector: ProjectorService,
  onProgress: (waitingRecords: number) => void = () => {},
): Promise<void> {
  for (;;) {
    const { failure } = projector.health()
    if (failure !== undefined) throw new Error(failure)
    if (await projector.isDrained()) return
    onProgress(lagRecords(await projector.lag()))
    await sleep(25)
  }
}
