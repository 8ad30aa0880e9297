/** The tables of a data directory: a ClickHouse server on its files, with the same adapter as for any other server. */
import type { Logger } from 'pino'
import { openDoor, type SqlDoor } from '../clickhouse-server/door.ts'
import { startClickHouseServer } from '../clickhouse-server/server.ts'
import { afterLoss } from '../clickhouse-server/start-error.ts'
import { opened } from '../runtime/async/closing.ts'
import type { Config } from '../runtime/config.ts'
import { checkParts } from '../tables/broken-parts.ts'
import { openTables, type TablesSettings } from '../tables/clickhouse/clickhouse.ts'
import { defaultDatabases, followedDatabases } from '../tables/generation-log.ts'
import { defaultNames } from '../tables/port.ts'
import { migrate } from '../tables/schema/migrate.ts'
import { definerUser } from '../tables/schema/roles.ts'
import type { DataDirectory } from './data-directory.ts'

export type EmbeddedTables = Awaited<ReturnType<typeof openEmbeddedTables>>

export interface EmbeddedTablesOptions {
  directory: DataDirectory
  config: Config
  /** Without it, only this program has a user of ClickHouse. */
  sql?: SqlDoor | undefined
  logger: Logger
}

/** Starts the server and migrates the tables. If that fails, it stops the server and throws. */
export function openEmbeddedTables(options: EmbeddedTablesOptions) {
  const { directory, config, sql, logger } = options
  return opened(async open => {
    const clickHouse = open(
      await startClickHouseServer({
        dataDirectory: directory.tables,
        filesDirectory: directory.clickHouse,
        nativePort: sql && 0,
        analyst: sql && { password: config.PLEDGEVIEW_SQL_PASSWORD },
        memoryBytesMax: config.PLEDGEVIEW_CLICKHOUSE_MEMORY_BYTES_MAX,
        downMsMax: config.PLEDGEVIEW_RETRY_MS_MAX,
        databases: defaultDatabases,
        logger,
      }),
    )
    const tables = open(openTables(childSettings(clickHouse, config)))
    const { url, nativePort = 0 } = clickHouse
    const ports = { httpPort: Number(new URL(url).port), nativePort }
    const door = open(sql && (await openDoor(sql, ports)))
    await migrate(tables, defaultNames, { viewsDefiner: definerUser })
    const databases = followedDatabases(defaultNames)
    await databases.follow(tables)
    await checkParts([tables], databases, afterLoss(directory.tables))
    return {
      ...{ clickHouse, tables, databases },
      /** The ports for data teams, if there are any. */
      door,
    }
  })
}

/** How a process connects to the server of a data directory. */
export function childSettings(
  { url, user, password, outage }: Pick<TablesSettings, 'url' | 'user' | 'password' | 'outage'>,
  config: Config,
): TablesSettings {
  return {
    ...{ url, user, password, outage },
    silenceMsMax: config.PLEDGEVIEW_CLICKHOUSE_SILENCE_MS_MAX,
    connectionsMax: config.PLEDGEVIEW_CLICKHOUSE_CONNECTIONS_MAX,
    idleConnectionMsMax: config.PLEDGEVIEW_CLICKHOUSE_IDLE_MS_MAX,
  }
}
