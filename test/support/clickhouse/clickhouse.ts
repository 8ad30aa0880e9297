/**
 * ClickHouse's own server for one test: on free loopback ports and in its own directory. A test may kill it and pause
 * it. It is started as `npm start` starts it, but it is not restarted when it ends.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programUser } from '../../../services/clickhouse-server/configuration.ts'
import { type StartOptions, start } from '../../../services/clickhouse-server/start.ts'
import { openTables, type TablesSettings } from '../../../services/tables/clickhouse/clickhouse.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import type { Tables } from '../../../services/tables/port.ts'

interface ClickHouseOptions extends Omit<Partial<StartOptions>, 'dataDirectory' | 'filesDirectory'> {
  /** A data directory as `npm start` has them, that stays. Default: a fresh one, that `stop` removes. */
  directory?: string
}

/** How to reach a server. */
export interface ClickHouseAddress {
  /** `http://127.0.0.1:port` */
  url: string
  user: string
  password: string
}

export type ClickHouse = Awaited<ReturnType<typeof startClickHouse>>

// Characters that a header, a URL and XML would each corrupt in a different way.
const programPassword = 'p:ass <&> wörd'
const memoryBytesMax = 4_000_000_000

/** Resolves once it answers. */
export async function startClickHouse({ directory: kept, ...options }: ClickHouseOptions = {}) {
  const directory = kept ?? (await mkdtemp(join(tmpdir(), 'pledgeview-clickhouse-')))
  const removeOwn = () => kept ?? rm(directory, { recursive: true, force: true })
  const { configuration, child } = await start({
    dataDirectory: join(directory, 'tables'),
    filesDirectory: join(directory, 'clickhouse'),
    databases: defaultDatabases,
    programPassword,
    memoryBytesMax,
    ...options,
  }).catch(async error => {
    await removeOwn()
    throw error
  })
  return {
    url: `http://127.0.0.1:${configuration.httpPort}`,
    user: programUser,
    password: configuration.programPassword,
    nativePort: configuration.nativePort,
    directory,
    pid: child.pid,
    /** Resolves with the reason when it has ended. */
    ended: child.ended,
    signal: (signal: 'SIGSTOP' | 'SIGCONT') => void process.kill(child.pid, signal),
    /** kill -9; the directory stays until `stop`. */
    kill: () => child.kill(),
    /** Ends it, and removes the directory if it made it. */
    async stop(): Promise<void> {
      await child.kill()
      await removeOwn()
    },
  }
}

/** The settings to open the tables of a server, or of any other service at a URL. */
export function settingsFor({ url, user, password }: ClickHouseAddress): TablesSettings {
  return {
    url,
    user,
    password,
    silenceMsMax: 10_000,
    connectionsMax: 12,
    idleConnectionMsMax: 2_500,
  }
}

export type OwnTables = Awaited<ReturnType<typeof openOwnTables>>

/** The tables of a server with nothing in it, or of that of a data directory. */
export async function openOwnTables(options: ClickHouseOptions = {}) {
  const clickHouse = await startClickHouse(options)
  // As the program waits: on a busy disk, a statement may be silent for long.
  const tables: Tables = openTables({ ...settingsFor(clickHouse), silenceMsMax: 30_000 })
  return {
    tables,
    clickHouse,
    /** Closes both. */
    async close(): Promise<void> {
      await tables.close()
      await clickHouse.stop()
    },
  }
}

/** Inserts rows as ClickHouse reads them from JSON, past the adapter. The columns are those of the first row. */
export async function insertJson(
  address: ClickHouseAddress,
  table: string,
  rows: readonly object[],
): Promise<void> {
  const [first] = rows
  if (first === undefined) return
  const columns = Object.keys(first).join(', ')
  const query = `INSERT INTO ${table} (${columns}) SETTINGS async_insert = 0, distributed_foreground_insert = 1 FORMAT JSONEachRow`
  await askClickHouse(address, query, rows.map(row => JSON.stringify(row)).join('\n'))
}

/** The answer to a request of plain HTTP. Throws with ClickHouse's words on an error. */
export async function askClickHouse(
  { url, user, password }: ClickHouseAddress,
  query: string,
  body = '',
): Promise<string> {
  const response = await fetch(`${url}/?query=${encodeURIComponent(query)}`, {
    method: 'POST',
    headers: { Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` },
    body,
  })
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return text
}
