/**
 * The engine behind the ClickHouse door: chDB, with a connection of its own for every request.
 *
 * Settings and parameters are set on that connection before the statement runs and go with it, so nothing of one request
 * reaches another. (On chDB's own parameter API they would share one place in the process.) A connection costs half a
 * millisecond.
 */
import { Session } from 'chdb'

/** One request, as ClickHouse's HTTP interface takes it. */
export interface DoorStatement {
  sql: string
  /** The format of the answer where the text names none. */
  format: string
  database: string | undefined
  settings: readonly (readonly [name: string, value: string])[]
  /** Values in the escaped text form that the wire has. */
  parameters: readonly (readonly [name: string, value: string])[]
}

export interface DoorAnswer {
  bytes: Uint8Array
  rowsRead: number
  bytesRead: number
}

export interface DoorEngine {
  /** Rejects with an error whose message is an exception as ClickHouse words it. */
  run(statement: DoorStatement): Promise<DoorAnswer>
  /** Resolves once the statements that run have ended and the data directory is free. */
  close(): Promise<void>
}

// Statements that run side by side, and those that may be there at all, as a server's max_concurrent_queries.
const lanesMax = 12
const statementsMax = 100
const spareThreads = 4

/** Opens (and makes) the data directory. `configFile` is a ClickHouse configuration, for users and clusters. */
export function openDoorEngine(directory: string, configFile: string | undefined): DoorEngine {
  // Every statement holds a thread of libuv's pool, which reads its size once, when it is first used.
  process.env.UV_THREADPOOL_SIZE ??= String(lanesMax + spareThreads)
  const connectionArgs = configFile === undefined ? [] : [`--config-file=${configFile}`]
  const connect = (): Session => new Session(directory, { connectionArgs })
  // The engine ends with its last connection, so one stays.
  const anchor = connect()
  const running = new Set<Promise<unknown>>()
  const waiting: (() => void)[] = []
  let lanes = lanesMax

  async function onConnection(statement: DoorStatement): Promise<DoorAnswer> {
    if (lanes > 0) lanes--
    else await new Promise<void>(resolve => waiting.push(resolve))
    try {
      const connection = connect()
      try {
        for (const preamble of preambles(statement)) await connection.queryAsync(preamble)
        const result = await connection.queryAsync(statement.sql, { format: statement.format })
        return { bytes: result.bytes(), rowsRead: result.rowsRead, bytesRead: result.bytesRead }
      } finally {
        connection.close()
      }
    } finally {
      const next = waiting.shift()
      if (next) next()
      else lanes++
    }
  }

  return {
    run(statement) {
      if (running.size >= statementsMax) {
        return Promise.reject(
          new Error(
            `Code: 202. DB::Exception: Too many simultaneous queries. Maximum: ${statementsMax}. (TOO_MANY_SIMULTANEOUS_QUERIES)`,
          ),
        )
      }
      const done = onConnection(statement).finally(() => running.delete(done))
      running.add(done)
      return done
    },

    async close() {
      // A connection that is closed under a running statement takes the engine of the whole process with it.
      await Promise.allSettled(running)
      anchor.close()
    },
  }
}

function preambles({ database, settings, parameters }: DoorStatement): string[] {
  const assignments = [
    ...settings.filter(([name]) => name !== 'readonly'),
    ...parameters.map(([name, value]) => [`param_${name}`, value] as const),
  ]
  const readonly = settings.filter(([name]) => name === 'readonly')
  return [
    ...(database === undefined ? [] : [`USE \`${database.replaceAll('`', '``')}\``]),
    ...(assignments.length === 0 ? [] : [setStatement(assignments)]),
    // Last, because nothing can be set after it.
    ...(readonly.length === 0 ? [] : [setStatement(readonly)]),
  ]
}

function setStatement(assignments: readonly (readonly [name: string, value: string])[]): string {
  return `SET ${assignments.map(([name, value]) => `${name} = ${quoted(value)}`).join(', ')}`
}

// NUL is escaped because the text goes through C.
function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\0', '\\0')}'`
}
