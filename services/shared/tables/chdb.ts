/**
 * Tables in-process: chDB behind `@clickhouse/client`.
 *
 * One connection runs one statement at a time, so there are several (lanes), and a statement takes one that is idle.
 * One process may hold a data directory; a second is refused by ClickHouse's own lock.
 */
import { Readable } from 'node:stream'
import { type ClickHouseClient, type ClickHouseClientConfigOptions, createClient } from '@clickhouse/client'
import { createChdbConnection } from 'chdb/connection'
import { bindParameters } from './bind-parameters.ts'
import { type CallOptions, type Statement, type TableInsert, type Tables, TablesError } from './port.ts'

type InjectedConnection = NonNullable<ClickHouseClientConfigOptions['connection']>

// What the engine itself calls passing. A disk that is full may be given room.
const passingErrors: ReadonlySet<string> = new Set([
  'TIMEOUT_EXCEEDED',
  'MEMORY_LIMIT_EXCEEDED',
  'NOT_ENOUGH_SPACE',
])

// Threads of the process's pool that are left to files, sockets and hashes when every lane is busy.
const spareThreads = 4

/**
 * Opens (and makes) the data directory. Throws `TablesError` where another process holds it.
 * `lanesMax` statements run side by side; more wait. `close` resolves when the statements that run have ended.
 */
export function openChdbTables(directory: string, { lanesMax = 6 } = {}): Tables {
  // A statement holds a thread of libuv's pool, which has four; it reads its size once, when it is first used.
  process.env.UV_THREADPOOL_SIZE ??= String(lanesMax + spareThreads)
  const lanes = openLanes(directory, lanesMax)
  const idle = [...lanes]
  const waiting: ((lane: ClickHouseClient) => void)[] = []
  const running = new Set<Promise<unknown>>()

  /** Runs on the next idle lane. An aborted signal ends the wait; the lane stays taken until the work has ended. */
  function onLane<T>(
    work: (lane: ClickHouseClient) => Promise<T>,
    { signal }: CallOptions = {},
    toError: (cause: unknown) => TablesError = toTablesError,
  ): Promise<T> {
    const done = withLane(async lane => {
      if (signal?.aborted) throw abandoned()
      try {
        return await work(lane)
      } catch (cause) {
        throw toError(cause)
      }
    }).finally(() => running.delete(done))
    running.add(done)
    return signal ? orAbandoned(done, signal) : done
  }

  async function withLane<T>(work: (lane: ClickHouseClient) => Promise<T>): Promise<T> {
    const lane = idle.pop() ?? (await new Promise<ClickHouseClient>(resolve => waiting.push(resolve)))
    try {
      return await work(lane)
    } finally {
      const next = waiting.shift()
      if (next) next(lane)
      else idle.push(lane)
    }
  }

  return {
    rows: <Row>(statement: Statement, options?: CallOptions) =>
      onLane(async lane => {
        const result = await lane.query({ query: bindParameters(statement), format: 'JSONEachRow' })
        return result.json<Row>()
      }, options),

    run: (statement, options) =>
      onLane(async lane => {
        await lane.command({ query: bindParameters(statement) })
      }, options),

    insert: (insert, options) =>
      onLane(
        async lane => {
          // chDB takes such a body for an empty one, and would say that it had inserted it.
          if (insert.body.trim() === '') throw new Error('rows of nothing but white space cannot be inserted')
          await lane.exec({ query: insertQuery(insert), values: Readable.from([insert.body]) })
        },
        options,
        toInsertError,
      ),

    async close() {
      // A connection that is closed under a running statement takes the engine of the whole process with it.
      await Promise.allSettled(running)
      await Promise.all(lanes.map(lane => lane.close()))
    },
  }
}

function openLanes(directory: string, count: number): ClickHouseClient[] {
  try {
    return Array.from({ length: count }, () => connect(directory))
  } catch (cause) {
    throw new TablesError(`cannot open the tables in ${directory}: ${messageOf(cause)}`, {
      retryable: false,
      cause,
    })
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

/** What `done` comes to, or a rejection as soon as the signal aborts. */
function orAbandoned<T>(done: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(abandoned())
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    done.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

function abandoned(): TablesError {
  return new TablesError('the caller no longer waits for the statement', { retryable: false })
}

function toTablesError(cause: unknown, message = messageOf(cause)): TablesError {
  // chDB throws the error class of its own copy of the client, so it is told by its shape.
  const type = cause instanceof Error && 'type' in cause ? String(cause.type) : undefined
  // There is no network to fail here.
  const retryable = type !== undefined && passingErrors.has(type)
  return new TablesError(message.replaceAll(/\s+/g, ' ').slice(0, 500), { retryable, type })
}

/** The engine quotes the rows that it could not take: neither what it quotes nor the chain of causes goes on. */
function toInsertError(cause: unknown): TablesError {
  const [explanation = ''] = messageOf(cause).split('\nRow 1:', 1)
  return toTablesError(cause, explanation.replace(/'.*'|'.*$/s, "'…'"))
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
