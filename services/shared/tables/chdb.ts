/**
 * Tables in-process: chDB behind `@clickhouse/client`.
 *
 * One connection runs one statement at a time, so there are several, and each statement takes the least busy. One
 * process may hold a data directory; a second is refused by ClickHouse's own lock.
 */
import { Readable } from 'node:stream'
import { type ClickHouseClient, type ClickHouseClientConfigOptions, createClient } from '@clickhouse/client'
import { createChdbConnection } from 'chdb/connection'
import { type CallOptions, type Statement, type TableInsert, type Tables, TablesError } from './port.ts'

type InjectedConnection = NonNullable<ClickHouseClientConfigOptions['connection']>

interface Lane {
  client: ClickHouseClient
  running: number
}

/**
 * Opens (and makes) the data directory. Throws `TablesError` where another process holds it.
 * `lanesMax` statements run side by side.
 */
export function openChdbTables(directory: string, { lanesMax = 6 } = {}): Tables {
  const lanes: Lane[] = []
  try {
    for (let i = 0; i < lanesMax; i++) lanes.push({ client: connect(directory), running: 0 })
  } catch (cause) {
    throw new TablesError(`cannot open the tables in ${directory}: ${messageOf(cause)}`, {
      retryable: false,
      cause,
    })
  }

  async function onLane<T>(work: (client: ClickHouseClient) => Promise<T>): Promise<T> {
    const lane = lanes.reduce((best, next) => (next.running < best.running ? next : best))
    lane.running++
    try {
      return await work(lane.client)
    } catch (cause) {
      throw toTablesError(cause)
    } finally {
      lane.running--
    }
  }

  return {
    rows: <Row>({ query, query_params }: Statement, options?: CallOptions) =>
      onLane(async client => {
        const result = await client.query({
          query,
          format: 'JSONEachRow',
          ...(query_params && { query_params }),
          ...abortable(options),
        })
        return result.json<Row>()
      }),

    run: ({ query, query_params }, options) =>
      onLane(async client => {
        await client.command({
          query,
          ...(query_params && { query_params }),
          ...abortable(options),
        })
      }),

    insert: (insert, options) =>
      onLane(async client => {
        await client.exec({
          query: insertQuery(insert),
          values: Readable.from([insert.body]),
          ...abortable(options),
        })
      }),

    async close() {
      await Promise.all(lanes.map(lane => lane.client.close()))
    },
  }
}

/** The text of an insert. Columns are named, so that a table may gain some. */
export function insertQuery({ table, columns, format }: TableInsert): string {
  return `INSERT INTO ${table} (${columns.join(', ')}) SETTINGS async_insert = 0 FORMAT ${format}`
}

function connect(directory: string): ClickHouseClient {
  // chDB is typed against its own copy of the client's types, which exactOptionalPropertyTypes tells apart.
  const connection = createChdbConnection({ path: directory }) as unknown as InjectedConnection
  return createClient({ connection })
}

function abortable(options: CallOptions | undefined): {
  abort_signal?: AbortSignal
} {
  return options?.signal ? { abort_signal: options.signal } : {}
}

function toTablesError(cause: unknown): TablesError {
  // chDB throws the error class of its own copy of the client, so it is told by its shape.
  const type = cause instanceof Error && 'type' in cause ? String(cause.type) : undefined
  // There is no network to fail here: only what the engine itself calls passing can pass.
  const retryable = type === 'TIMEOUT_EXCEEDED' || type === 'MEMORY_LIMIT_EXCEEDED'
  // The engine's error quotes the rows that it could not take: neither they nor the chain of causes go on.
  const [message = ''] = messageOf(cause).split('\nRow 1:', 1)
  return new TablesError(message.replaceAll(/\s+/g, ' ').slice(0, 500), { retryable, type })
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
