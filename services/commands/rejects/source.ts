/** What the rejects commands work on: the tables, and the log that records are appended to again. */

import { databasesOf, registryOf, serverSettings } from '../../distributed.ts'
import { type ModelAccess, withModel } from '../../local/access.ts'
import { openExistingDataDirectory } from '../../local/data-directory.ts'
import type { LogRecord } from '../../log/port.ts'
import { schemaIdsOf, type WriterSchemas } from '../../projector/ingest/decode.ts'
import type { Config } from '../../runtime/config.ts'
import { openTables } from '../../tables/clickhouse.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { embeddedDirectory } from '../command.ts'
import { journalTarget, openKafkaTarget, type RetryTarget } from './target.ts'

export interface RejectSource {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  schemas: Schemas
  /** Opens the log for records that are valid events now. In a dry run nothing is appended. */
  openTarget(options: { isDry: boolean }): Promise<RetryTarget>
}

/** The schemas behind the schema ids of values, for the log that they came from. */
export interface Schemas {
  /** `undefined`: the fixed ids. */
  known: WriterSchemas | undefined
  /** Looks up the schema ids of the records. Throws `SchemaRegistryError` if one cannot be looked up. */
  learn(records: readonly LogRecord[]): Promise<void>
}

/** Runs the work on the rejects: of Kafka's log if it is configured and no data directory is given. */
export async function withRejects<T>(
  dataDir: string | undefined,
  config: Config,
  work: (source: RejectSource) => Promise<T>,
): Promise<T> {
  const root = embeddedDirectory(dataDir, config)
  if (root !== undefined) {
    const directory = openExistingDataDirectory(root)
    return withModel(directory, config, { isCaughtUp: false }, access => work(embeddedSource(access)))
  }
  const tables = openTables(serverSettings(config))
  try {
    return await work(distributedSource(config, tables))
  } finally {
    await tables.close()
  }
}

function embeddedSource({ tables, databases, writer }: ModelAccess): RejectSource {
  return {
    tables,
    databases,
    schemas: { known: undefined, learn: async () => undefined },
    openTarget: async ({ isDry }) => journalTarget(writer, { isDry }),
  }
}

function distributedSource(config: Config, tables: Tables): RejectSource {
  const registry = registryOf(config)
  return {
    tables,
    databases: databasesOf(config),
    schemas: {
      known: registry?.known,
      learn: async records => registry?.learn(schemaIdsOf(records)),
    },
    openTarget: ({ isDry }) => openKafkaTarget(config, tables, { isDry }),
  }
}
