/**
 * Tables on a ClickHouse server, over HTTP: the server that `npm start` runs, or any other.
 *
 * Promises in addition to those of the port:
 * - a read is sent again if its connection was refused or cut, at most twice; a write is not. An insert whose answer
 *   was lost may have happened. Its caller repeats it. That changes nothing, because the ledger keeps one row per
 *   entity and version, and a batch that is in the log twice is folded once. The caller of a fold has to know that
 *   its answer was lost, so it is not repeated here;
 * - a `TablesError` has a `type` only if ClickHouse itself answered (clickhouse-errors.ts);
 * - what resolves has succeeded: ClickHouse holds back its answer until the statement has ended, so no error follows
 *   a 200.
 *
 * `silenceMsMax` bounds silence, not work: while a statement reads, ClickHouse sends progress headers.
 */
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import {
  type ClickHouseClient,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  createClient,
} from '@clickhouse/client'
import { retry } from '../../runtime/async/retry.ts'
import { statementTracer } from '../../runtime/traces.ts'
import { type CallOptions, type Statement, type Tables, TablesError } from '../port.ts'
import { answerError, connectionError, holdsException, isWorthAnotherRead } from './clickhouse-errors.ts'
import { namesAndTypes, rowFormat } from './row-binary.ts'
import { answerOf, parameterText, type Request, statementForm, streamOf } from './statements.ts'

export interface TablesSettings {
  /** `http://host:port` or `https://host:port`; no user, password, path or query. */
  url: string
  user: string
  password: string
  /** PEM text of the server's certificate authority, if Node does not know it. */
  caCertificate?: string | undefined
  /** How long the server may be silent before a request is given up, ms. */
  silenceMsMax: number
  /** How many connections are open at once. Further statements wait. */
  connectionsMax: number
  /** How long an idle connection is kept, ms. It must be shorter than the server and a load balancer keep theirs. */
  idleConnectionMsMax: number
  /** Why the server is away, if that is known. Nothing is sent then: another program may have its port, and would get the password. */
  outage?: (() => string | undefined) | undefined
  /** Sent with every statement, for example `clusterSettings`. */
  statementSettings?: Readonly<Record<string, string | number>>
}

/** Tables on a server, which can send an answer that is too large for memory. */
export interface ServerTables extends Tables {
  /** The bytes of a statement that names its format. If the statement fails later, the stream does, too. */
  stream(statement: Statement): Promise<Readable>
}

// How many statements may wait for a connection. More than that is an overload that waiting does not cure.
const waitingMax = 1_000
const retries = { attemptsMax: 3, pauseMsMin: 75, pauseMsMax: 150 }
// Proxies refuse URLs beyond this length, so longer parameters go into the body.
const urlParametersCharsMax = 4_096
export const queryBytesMax = 4_194_304
// ClickHouse keeps an answer in memory up to this size until the statement has ended, and on disk beyond it.
const answerBufferBytesMax = 33_554_432
// Room for some hundred progress headers. Node silently drops all headers after the 2,000th, including the error
// code.
const answerHeaderBytesMax = 131_072

/**
 * Settings for a session of its own: one connection, and every statement in it. Its temporary tables end with it. ClickHouse forgets a
 * session that rests for some seconds, and then the next statement fails.
 */
export function inSession(settings: TablesSettings): TablesSettings {
  const statementSettings = { ...settings.statementSettings, session_id: randomUUID() }
  return { ...settings, connectionsMax: 1, statementSettings }
}

/** Connects at the first statement. */
export function openTables(settings: TablesSettings): ServerTables {
  const url = new URL(settings.url)
  const client = connect(settings, url)
  const running = new Set<Promise<unknown>>()

  /** The text of a successful answer. Every failure rejects with `TablesError`. By default nothing is sent again. */
  function send(request: Request, isRetryable = (_error: unknown) => false): Promise<string> {
    if (running.size >= settings.connectionsMax + waitingMax) return Promise.reject(overloaded())
    const done = attempts(request, isRetryable).finally(() => running.delete(done))
    running.add(done)
    return done
  }

  function refuseIfAway(): void {
    const outage = settings.outage?.()
    if (outage !== undefined)
      throw new TablesError(`ClickHouse is away, and is started again: ${outage}`, { retryable: true })
  }

  async function attempts(request: Request, isRetryable: (error: unknown) => boolean): Promise<string> {
    const { signal } = request
    const policy = { ...retries, isRetryable, msMax: settings.silenceMsMax }
    const attempt = () => {
      // The client does not notice a signal that has already aborted.
      if (signal?.aborted) throw abandoned()
      refuseIfAway()
      return answerOf(client, request)
    }
    try {
      return await retry(attempt, policy, { random: Math.random, signal })
    } catch (cause) {
      if (signal?.aborted) throw abandoned()
      throw cause instanceof TablesError ? cause : connectionError(cause, url.host)
    }
  }

  const progress: ClickHouseSettings = {
    send_progress_in_http_headers: 1,
    http_headers_progress_interval_ms: String(Math.ceil(settings.silenceMsMax / 3)),
  }
  const common: ClickHouseSettings = {
    ...settings.statementSettings,
    wait_end_of_query: 1,
    http_response_buffer_size: String(answerBufferBytesMax),
    max_query_size: String(queryBytesMax),
  }

  return {
    async rows<Row>(statement: Statement, { signal, threadsMax }: CallOptions = {}) {
      const settings = { ...common, ...progress, ...readSettings, ...threadSettings(threadsMax) }
      const request = { ...sendable(statement), settings, signal }
      return parseRows<Row>(await send(request, isWorthAnotherRead))
    },

    async run(statement, { signal, threadsMax } = {}) {
      const answer = await send({
        ...sendable(statement),
        settings: { ...common, ...progress, ...threadSettings(threadsMax) },
        signal,
      })
      // A lost failure would be a lost fold, so this checks again for an exception in the text.
      if (holdsException(answer)) throw answerError(200, answer)
    },

    async stream(statement) {
      // ClickHouse does not hold this answer back. It cuts the connection if the statement fails.
      const sent = { ...settings.statementSettings, ...progress }
      refuseIfAway()
      try {
        return await streamOf(client, { ...sendable(statement), settings: sent })
      } catch (cause) {
        throw cause instanceof TablesError ? cause : connectionError(cause, url.host)
      }
    },

    async insert({ table, columns, rows }, { signal } = {}) {
      const names = columns.map(({ name }) => name).join(', ')
      const request = {
        query: `INSERT INTO ${table} (${names}) SETTINGS async_insert = 0 FORMAT ${rowFormat}`,
        values: Readable.from([namesAndTypes(columns), rows]),
        insertInto: table,
        settings: common,
        signal,
      }
      await send(request)
    },

    async close() {
      await Promise.allSettled(running)
      await client.close()
    },
  }
}

function connect(settings: TablesSettings, url: URL): ClickHouseClient {
  const { caCertificate } = settings
  const tracer = statementTracer()
  return createClient({
    url,
    username: settings.user,
    password: settings.password,
    application: 'pledgeview',
    request_timeout: settings.silenceMsMax,
    max_open_connections: settings.connectionsMax,
    max_response_headers_size: answerHeaderBytesMax,
    keep_alive: {
      idle_socket_ttl: settings.idleConnectionMsMax,
      eagerly_destroy_stale_sockets: true,
    },
    // The client logs the same errors that it throws, and they may contain rows.
    log: { level: ClickHouseLogLevel.OFF },
    ...(tracer && { tracer }),
    ...(caCertificate !== undefined && { tls: { ca_cert: Buffer.from(caCertificate) } }),
  })
}

// Read-only: ClickHouse ends the query when the caller stops waiting, and a call of `rows` can never write.
const readSettings: ClickHouseSettings = {
  default_format: 'JSONEachRow',
  output_format_json_quote_64bit_integers: 0,
  output_format_json_quote_decimals: 0,
  readonly: '2',
  cancel_http_readonly_queries_on_client_close: 1,
}

function threadSettings(threadsMax: number | undefined): ClickHouseSettings {
  return threadsMax === undefined ? {} : { max_threads: threadsMax }
}

/** The statement as it is sent: with its parameters in the URL, or in a form if they would make the URL too long. */
function sendable(statement: Statement): Pick<Request, 'query' | 'query_params' | 'contentType'> {
  const { query, query_params } = statement
  if (!query_params) return { query }
  const chars = Object.values(query_params).reduce<number>(
    (sum, value) => sum + parameterText(value).length,
    0,
  )
  if (chars <= urlParametersCharsMax) return { query, query_params }
  const { body, contentType } = statementForm(query, query_params, `pledgeview-${randomUUID()}`)
  return { query: body, contentType }
}

function parseRows<Row>(answer: string): Row[] {
  try {
    // One row per line: within JSON a newline is escaped.
    return JSON.parse(`[${answer.trimEnd().replaceAll('\n', ',')}]`) as Row[]
  } catch {
    if (holdsException(answer)) throw answerError(200, answer)
    throw new TablesError('the answer of ClickHouse does not contain the requested rows', { retryable: true })
  }
}

function overloaded(): TablesError {
  return new TablesError(`${waitingMax} statements wait for a connection to ClickHouse already`, {
    retryable: true,
  })
}

function abandoned(): TablesError {
  return new TablesError('the caller no longer waits for the statement', { retryable: false })
}
