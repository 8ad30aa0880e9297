/**
 * Rebuilds of an embedded model. They run in the process of their command, over the same ClickHouse server and the same journal as
 * the service. So they take no time from its answers, and end with their command.
 */
import type { Logger } from 'pino'
import { createRebuilds, type Rebuilds } from '../generations/rebuilds.ts'
import { openJournalHistory } from '../log/local/history.ts'
import type { HashBacker } from '../projector/ingest/backer-hash.ts'
import { closing } from '../runtime/async/closing.ts'
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
