/**
 * The embedded read model: journal, ClickHouse server and the projector between them, under one lock.
 *
 * `npm start` adds the API. Commands that need the tables while no service runs open the model alone.
 */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { openLiveProjector } from '../generations/live-projector.ts'
import { journalName, openJournalReader, openJournalWriter } from '../log/local/journal.ts'
import { lockDataDirectory, lockFileOf } from '../log/local/lock.ts'
import { lagRecords } from '../log/port.ts'
import { backerHasher } from '../projector/ingest/backer-hash.ts'
import { readPositions } from '../projector/positions/positions.ts'
import { opened } from '../runtime/async/closing.ts'
import type { Config } from '../runtime/config.ts'
import type { Metrics } from '../runtime/ops/metrics.ts'
import { noteStop } from '../tables/projector-stops.ts'
import { holdTablesIdentity, type Identity } from '../tables/schema/identity.ts'
import { mustBeOwner, readSecrets, type Secrets, serviceAddress } from './data-directory.ts'
import { type EmbeddedTablesOptions, openEmbeddedTables } from './tables.ts'

/** The journal consumer whose positions belong to the projector. */
export const liveConsumer = 'projector'

export type EmbeddedModel = Awaited<ReturnType<typeof openEmbeddedModel>>

/** Locks the directory, migrates its tables and starts projecting. Throws if another process holds the directory. */
export async function openEmbeddedModel(options: EmbeddedTablesOptions & { metrics: Metrics }) {
  const { directory, config, metrics, logger } = options
  return opened(async open => {
    // Before root makes a lock that the owner could not open. If there is one, a service may run here, and root may ask it.
    if (!existsSync(lockFileOf(directory.root))) mustBeOwner(directory)
    open(lockDataDirectory(directory.root))
    mustBeOwner(directory)
    // A process that was killed has left its own.
    serviceAddress.remove(directory)
    // A wrong setting is refused before ClickHouse starts.
    const secrets = readSecrets(directory, config)
    const own = open(await openEmbeddedTables(options))
    const { tables, databases } = own
    await holdTablesIdentity(tables, databases, identityOf(secrets, config))
    const { ofLog } = await readPositions([{ tables, databases }], journalName)
    const writer = open(await openJournalWriter(directory.journal))
    const run = `embedded-${randomUUID()}`
    const stop = new AbortController()
    const projector = await openLiveProjector({
      ...{ tables, databases, config, run, metrics, logger, signal: stop.signal },
      hashBacker: backerHasher(secrets.backerKey),
      openReader: async starts =>
        open(await openJournalReader(directory.journal, { consumer: liveConsumer, starts })),
    })
    const stopped = projector.run(stop.signal).then(
      () => undefined,
      async (error: Error) => {
        // What fails while it closes is no stop.
        if (stop.signal.aborted) return undefined
        await noteStop(tables, databases, run, error, logger)
        return error
      },
    )
    open({
      close() {
        stop.abort()
        return stopped
      },
    })
    return {
      ...{ ...own, writer, projector, secrets },
      /** Whether the tables had nothing of the journal when they were opened. */
      areNew: ofLog.size === 0,
      /** Resolves when the projector has stopped: with its error, or with `undefined` after `close`. */
      stopped,
      /** Resolves when everything in the journal is folded. Throws if the projector stops before. */
      async whenDrained(onProgress?: (waitingRecords: number) => void): Promise<void> {
        for (;;) {
          const { failure } = projector.health()
          if (failure !== undefined) throw new Error(failure)
          if (await projector.isDrained()) return
          if (onProgress) onProgress(lagRecords(await projector.lag()))
          await sleep(25)
        }
      },
    }
  })
}

/** What the tables of a directory depend on. */
export function identityOf({ backerKey, keyPepper, portalKey }: Secrets, config: Config): Required<Identity> {
  const { PLEDGEVIEW_PLATFORM_CURRENCY } = config
  const secrets = { PLEDGEVIEW_BACKER_KEY: backerKey, PLEDGEVIEW_KEY_PEPPER: keyPepper }
  return { ...secrets, PLEDGEVIEW_PORTAL_KEY: portalKey, PLEDGEVIEW_PLATFORM_CURRENCY }
}
