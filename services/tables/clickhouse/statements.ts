/** How statements go to ClickHouse, and how their answers are read: as text, or as they come. */
import { addAbortSignal, type Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client'
import { untilFound } from '../../runtime/async/sleep.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { type Statement, type Tables, TablesError } from '../port.ts'
import { answerError } from './clickhouse-errors.ts'

export interface Request extends Statement {
  settings: ClickHouseSettings
  /** The form of the statement, if it is not plain text. */
  contentType?: string
  /** Rows. Such a request is sent once. */
  values?: Readable
  /** The table whose rows an error might contain. */
  insertInto?: string
  signal?: AbortSignal | undefined
}

/** Rejects with `TablesError` if the answer is not a success, and with the client's error if none came. */
export async function answerOf(client: ClickHouseClient, request: Request): Promise<string> {
  const { insertInto, signal } = request
  const answer = await execute(client, request)
  // The client itself listens to the signal only until the headers have come.
  const body = await text(signal ? addAbortSignal(signal, answer.stream) : answer.stream)
  const status = answer.http_status_code ?? 0
  if (hasFailed(answer)) throw answerError(status, body, insertInto)
  return body
}

/** The same for the answer's bytes, as they come. */
export async function streamOf(client: ClickHouseClient, request: Request): Promise<Readable> {
  const answer = await execute(client, request)
  if (!hasFailed(answer)) return answer.stream
  throw answerError(answer.http_status_code ?? 0, await text(answer.stream))
}

type Answer = Awaited<ReturnType<typeof execute>>

// After the first progress headers the status can only be 200.
function hasFailed({ http_status_code: status, response_headers: headers }: Answer): boolean {
  return status !== 200 || headers['x-clickhouse-exception-code'] !== undefined
}

function execute(
  client: ClickHouseClient,
  { query, query_params, settings, contentType, values, signal }: Request,
) {
  return client.exec({
    query,
    clickhouse_settings: settings,
    // Otherwise the client would hide the status, which says whether a retry can help.
    ignore_error_response: true,
    ...(query_params && { query_params }),
    ...(contentType !== undefined && { http_headers: { 'Content-Type': contentType } }),
    ...(values && { values }),
    ...(signal && { abort_signal: signal }),
  })
}

/*
 * A statement with long parameters as a form. The client normally puts parameters into the URL, and proxies refuse
 * long URLs. Pure.
 *
 * Source: ClickHouse documentation, "HTTP interface", "Queries with parameters" (also as `multipart/form-data`).
 */

/** `boundary` must not occur in any value: use a random one for each statement. */
export function statementForm(
  query: string,
  parameters: Readonly<Record<string, unknown>>,
  boundary: string,
) {
  const fields = [
    ['query', query] as const,
    ...Object.entries(parameters).map(([name, value]) => [`param_${name}`, parameterText(value)] as const),
  ]
  const parts = fields.map(
    ([name, text]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`,
  )
  return {
    body: `${parts.join('')}--${boundary}--\r\n`,
    contentType: `multipart/form-data; boundary=${boundary}`,
  }
}

/** A value in ClickHouse's escaped text form. Throws a `TypeError` if it cannot be a parameter. */
export function parameterText(value: unknown): string {
  if (value === null) return '\\N'
  return typeof value === 'string' ? escaped(value) : literal(value)
}

/** The form of a value inside an array or a map. */
function literal(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return `'${escaped(value)}'`
    case 'number':
    case 'bigint':
    case 'boolean':
      return String(value)
    case 'object':
      if (value === null) return 'NULL'
      if (Array.isArray(value)) return `[${value.map(literal).join(',')}]`
      return `{${Object.entries(value)
        .map(([key, item]) => `${literal(key)}:${literal(item)}`)
        .join(',')}}`
    default:
      throw new TypeError(`a parameter cannot be a ${typeof value}`)
  }
}

const escapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  "'": "\\'",
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\0': '\\0',
}

function escaped(text: string): string {
  return text.replace(/[\\'\t\n\r\0]/g, character => escapes[character] ?? character)
}

/*
 * Ids in parts, each for one statement: ClickHouse bounds the length of a parameter, at 128 KiB by default. A server that refuses one
 * refuses it again, however often the statement is repeated.
 */

// A character takes three bytes at most, with its escapes.
const charsMax = 40_000

export function* idChunks(ids: readonly string[], countMax: number): Generator<string[]> {
  let part: string[] = []
  let chars = 0
  for (const id of ids) {
    if (part.length > 0 && (part.length === countMax || chars + id.length > charsMax)) {
      yield part
      part = []
      chars = 0
    }
    part.push(id)
    chars += id.length
  }
  if (part.length > 0) yield part
}

/* Settings that several statements have. Pure. */

// A few rows are read sooner by one thread than they are shared among several. The buffers are as small as what is read.
export const fewRows = 'max_threads = 1, max_read_buffer_size = 65536'

/** SQL of a moment in UTC as ISO 8601. */
export function iso(column: string): string {
  return `formatDateTime(${column}, '%Y-%m-%dT%H:%i:%S.%fZ')`
}

// The caller stops waiting by its signal. This setting also stops the work in ClickHouse, which nothing would read.
export function timeBound(msMax: number): string {
  return `max_execution_time = ${Math.ceil(msMax / 1000)}`
}

/* Which statements ClickHouse runs. After a lost connection, only this tells that a statement has ended. */

export interface WaitOptions extends Pick<Runtime, 'monotonicMs' | 'sleep'> {
  /** How long to wait. */
  msMax: number
}

/** Resolves once no statement runs that contains one of these texts. Throws `TablesError`, a retryable one if it waited in vain. */
export async function untilNoneRuns(
  tables: Pick<Tables, 'rows'>,
  texts: readonly string[],
  { msMax, ...time }: WaitOptions,
): Promise<void> {
  const none = await untilFound(
    msMax,
    async () => {
      const [running] = await tables.rows<{ statements: number }>({
        // The condition excludes this query itself.
        query: `SELECT count() AS statements FROM system.processes
              WHERE multiSearchAny(query, {texts:Array(String)}) AND position(query, 'system.processes') = 0`,
        query_params: { texts: [...texts] },
      })
      return running?.statements === 0 || undefined
    },
    time,
  )
  if (!none)
    throw new TablesError(`a statement still runs after ${msMax} ms: ${texts[0]}`, { retryable: true })
}
