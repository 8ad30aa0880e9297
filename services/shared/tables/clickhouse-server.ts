/**
 * Tables on a ClickHouse server, over HTTP.
 *
 * Promises of its own, beside those of the port:
 * - reads are sent again when their connection was refused or cut, at most twice; what writes is not. An insert whose
 *   answer got lost may have happened: its caller repeats it, which changes nothing, since the ledger keeps one row per
 *   entity and version, and a batch that is in the log twice is folded once. A fold whose answer got lost is another
 *   matter, so its caller has to learn of it;
 * - a `TablesError` has a `type` only where ClickHouse itself answered (clickhouse-server-errors.ts);
 * - what resolves has succeeded: ClickHouse keeps its answer until the statement has ended, so no error follows a 200.
 *
 * `silenceMsMax` bounds silence, not work: while a statement runs, ClickHouse sends headers that say how far it is.
 */
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ClickHouseClient,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  createClient,
} from '@clickhouse/client'
import { bindParameters } from './bind-parameters.ts'
import {
  answerError,
  connectionError,
  holdsException,
  isWorthAnotherRead,
} from './clickhouse-server-errors.ts'
import { type CallOptions, type Statement, type TableInsert, type Tables, TablesError } from './port.ts'

export interface ServerSettings {
  /** `http://host:port` or `https://host:port`; no user, password, path or query. */
  url: string
  user: string
  password: string
  /** PEM text of the authority behind the server's certificate, where it is none that Node knows. */
  caCertificate?: string | undefined
  /** gzip of inserted rows and of results: worth its processor time on a slow network only. */
  compression: boolean
  /** How long the server may be silent before a request is given up, ms. */
  silenceMsMax: number
  /** Connections that are open at once; statements beyond them wait. */
  connectionsMax: number
  /** How long an idle connection is kept, ms; below what the server and any balancer before it keep theirs. */
  idleConnectionMsMax: number
  /** Sent with every statement, for example `replicatedSettings`. */
  statementSettings?: Readonly<Record<string, string | number>>
}

export interface ServerDependencies {
  monotonicMs?: () => number
  /** 0 to 1, for the pause before a read is sent again. */
  random?: () => number
}

interface Request {
  query: string
  query_params?: Record<string, unknown>
  settings: ClickHouseSettings
  values?: Readable
  /** The table whose rows an error might quote. */
  insertInto?: string
  signal: AbortSignal | undefined
}

// Statements that may wait for a connection; more than that is an overload that waiting does not cure.
const waitingMax = 1_000
const readAttemptsMax = 3
// Beyond this, proxies start to refuse a URL; and this is what the text may grow to that takes the parameters instead.
const urlParametersCharsMax = 4_096
const queryBytesMax = 4_194_304
// Room for some hundred progress headers. Node silently drops all headers after the 2,000th, the error code among them.
const answerHeaderBytesMax = 131_072

/** Connects when the first statement comes. Throws `TypeError` on a URL that is not of the form above. */
export function openServerTables(
  settings: ServerSettings,
  { monotonicMs = () => performance.now(), random = Math.random }: ServerDependencies = {},
): Tables {
  const url = serverUrl(settings.url)
  const client = connect(settings, url)
  const running = new Set<Promise<unknown>>()

  /** The text of a successful answer. Every failure rejects with `TablesError`. */
  function send(request: Request, attemptsMax = 1): Promise<string> {
    if (running.size >= settings.connectionsMax + waitingMax) return Promise.reject(overloaded())
    const done = attempts(request, attemptsMax).finally(() => running.delete(done))
    running.add(done)
    return done
  }

  async function attempts(request: Request, attemptsMax: number): Promise<string> {
    const { signal } = request
    const deadline = monotonicMs() + settings.silenceMsMax
    for (let attempt = 1; ; attempt++) {
      // The client does not notice a signal that was aborted before.
      if (signal?.aborted) throw abandoned()
      try {
        return await answerOf(client, request)
      } catch (cause) {
        if (signal?.aborted) throw abandoned()
        const isOver = attempt === attemptsMax || monotonicMs() >= deadline
        if (isOver || !isWorthAnotherRead(cause)) {
          throw cause instanceof TablesError ? cause : connectionError(cause, url.host)
        }
        await sleep(50 * attempt * (0.5 + random()), undefined, { signal }).catch(() => {})
      }
    }
  }

  const common: ClickHouseSettings = {
    ...settings.statementSettings,
    wait_end_of_query: 1,
    max_query_size: String(queryBytesMax),
  }

  return {
    async rows<Row>(statement: Statement, { signal }: CallOptions = {}) {
      const request = { ...parametersOf(statement), settings: { ...common, ...readSettings }, signal }
      return parseRows<Row>(await send(request, readAttemptsMax))
    },

    async run(statement, { signal } = {}) {
      const answer = await send({
        ...parametersOf(statement),
        settings: { ...common, ...progressSettings(settings.silenceMsMax) },
        signal,
      })
      // A lost failure is a lost fold, so this looks again at what no answer of success has.
      if (holdsException(answer)) throw answerError(200, answer)
    },

    async insert(insert, { signal } = {}) {
      await send({
        query: insertQuery(insert),
        values: Readable.from([insert.body]),
        insertInto: insert.table,
        settings: common,
        signal,
      })
    },

    async close() {
      await Promise.allSettled(running)
      await client.close()
    },
  }
}

/** Rejects with `TablesError` where the answer is none of success, and with whatever kept it from coming. */
async function answerOf(client: ClickHouseClient, request: Request): Promise<string> {
  const { query, query_params, settings, values, insertInto, signal } = request
  const answer = await client.exec({
    query,
    clickhouse_settings: settings,
    // The client would leave out the status, which tells whether trying again can help.
    ignore_error_response: true,
    ...(query_params && { query_params }),
    ...(values && { values }),
    ...(signal && { abort_signal: signal }),
  })
  const body = await textOf(answer.stream, signal)
  const status = answer.http_status_code ?? 0
  // Once progress headers have gone out it is too late for another status than 200.
  const isException = answer.response_headers['x-clickhouse-exception-code'] !== undefined
  if (status !== 200 || isException) throw answerError(status, body, insertInto)
  return body
}

/** Reads to the end. The client listens to the signal only until the headers are there. */
async function textOf(stream: Readable, signal: AbortSignal | undefined): Promise<string> {
  const onAbort = (): unknown => stream.destroy(abandoned())
  if (signal?.aborted) onAbort()
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    return await text(stream)
  } finally {
    signal?.removeEventListener('abort', onAbort)
  }
}

function connect(settings: ServerSettings, url: URL): ClickHouseClient {
  const { caCertificate, compression } = settings
  return createClient({
    url,
    username: settings.user,
    password: settings.password,
    application: 'pledgeview',
    request_timeout: settings.silenceMsMax,
    max_open_connections: settings.connectionsMax,
    max_response_headers_size: answerHeaderBytesMax,
    compression: { request: compression && { codec: 'gzip', level: 1 }, response: compression },
    keep_alive: {
      idle_socket_ttl: settings.idleConnectionMsMax,
      eagerly_destroy_stale_sockets: true,
    },
    // What it logs are the errors that are thrown anyway, and they may quote rows.
    log: { level: ClickHouseLogLevel.OFF },
    ...(caCertificate !== undefined && { tls: { ca_cert: Buffer.from(caCertificate) } }),
  })
}

function serverUrl(text: string): URL {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol))
    throw new TypeError('the ClickHouse URL is not http(s)://host:port')
  // The client would take these for settings, and print the URL in its warnings.
  if (url.username || url.password || url.search || url.hash || url.pathname !== '/') {
    throw new TypeError('the ClickHouse URL may have no user, password, path, query or fragment')
  }
  return url
}

// Read-only, so that ClickHouse ends the work when the caller stops waiting (and so that rows never writes).
const readSettings: ClickHouseSettings = {
  default_format: 'JSONEachRow',
  output_format_json_quote_64bit_integers: 0,
  output_format_json_quote_decimals: 0,
  readonly: '2',
  cancel_http_readonly_queries_on_client_close: 1,
}

// Uncompressed: servers are known to forget the encoding's header once progress headers have gone out.
function progressSettings(silenceMsMax: number): ClickHouseSettings {
  return {
    send_progress_in_http_headers: 1,
    http_headers_progress_interval_ms: String(Math.ceil(silenceMsMax / 3)),
    enable_http_compression: 0,
  }
}

/** The statement with its parameters in the URL, or as literals where they would make that too long. */
function parametersOf(statement: Statement): Statement {
  const { query, query_params } = statement
  if (!query_params || JSON.stringify(query_params, textOfBigInt).length <= urlParametersCharsMax)
    return statement
  return { query: bindParameters({ query, query_params }) }
}

function textOfBigInt(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

/** The text of an insert. Columns are named, so that a table may gain some. */
function insertQuery({ table, columns, format }: TableInsert): string {
  return `INSERT INTO ${table} (${columns.join(', ')}) SETTINGS async_insert = 0 FORMAT ${format}`
}

function parseRows<Row>(answer: string): Row[] {
  try {
    // A line a row: within JSON a newline is escaped.
    return JSON.parse(`[${answer.trimEnd().replaceAll('\n', ',')}]`) as Row[]
  } catch {
    throw new TablesError('the answer of ClickHouse is not the rows that were asked for', { retryable: true })
  }
}

function abandoned(): TablesError {
  return new TablesError('the caller no longer waits for the statement', { retryable: false })
}

function overloaded(): TablesError {
  return new TablesError(`${waitingMax} statements wait for a connection to ClickHouse already`, {
    retryable: true,
  })
}
