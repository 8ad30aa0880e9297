/**
 * Rebuilds of an embedded model. They run in the process of their command, over the same ClickHouse server and the same journal as
 * the service. So they take no time from its answers, and end with their command.
 */
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { HashBacker } from '../projector/ingest/backer-hash.ts'
import { runRebuild } from '../rebuild/rebuild.ts'
import { createRebuilds, type Rebuilds } from '../rebuild/rebuilds.ts'
import type { Config } from '../shared/config.ts'
import { openJournalHistory } from '../shared/event-log/journal/history.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'

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

export function createEmbeddedRebuilds({ journal, ...dependencies }: EmbeddedRebuildsDependencies): Rebuilds {
  return createRebuilds({
    ...dependencies,
    async withHistory(work) {
      const history = await openJournalHistory(journal)
      try {
        return await work(history)
      } finally {
        await history.close()
      }
    },
    runRebuild: (history, request, { onProgress, signal }) =>
      runRebuild(
        {
          ...dependencies,
          history,
          run: `rebuild-${randomUUID()}`,
          onProgress,
          now: Date.now,
          monotonicMs: () => performance.now(),
          random: Math.random,
        },
        request,
        signal,
      ),
  })
}
