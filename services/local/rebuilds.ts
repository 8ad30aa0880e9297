/**
 * Rebuilds of an embedded model. They run in the process of their command, over the same ClickHouse server and the same journal as
 * the service. So they take no time from its answers, and end with their command.
 */
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { runRebuild } from '../generations/rebuild.ts'
import { createRebuilds, type Rebuilds } from '../generations/rebuilds.ts'
import { openJournalHistory } from '../log/local/history.ts'
import type { HashBacker } from '../projector/ingest/backer-hash.ts'
import { closing } from '../runtime/closing.ts'
import type { Config } from '../runtime/config.ts'
import type { Databases, Tables } from '../tables/port.ts'

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
    withHistory: work => closing(async open => work(open(await openJournalHistory(journal)))),
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
