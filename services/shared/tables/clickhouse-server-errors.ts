/**
 * What went wrong between us and a ClickHouse server, as `TablesError`. Pure.
 *
 * `retryable` is true for what can pass: a connection that was refused, cut or silent, a proxy's passing status, and the
 * errors that ClickHouse gives for load, for time and memory, and for replicas that are behind. A statement that is
 * wrong stays wrong.
 *
 * `type` is set where ClickHouse itself answered, and only then. So TIMEOUT_EXCEEDED means that the server said that it
 * ended the statement; of a cut or silent connection nobody knows what became of the statement.
 *
 * Messages quote neither rows nor credentials, and the chain of causes, which might, is not passed on.
 */
import { ClickHouseError, parseError } from '@clickhouse/client'
import { TablesError } from './port.ts'

const passingTypes: ReadonlySet<string> = new Set([
  // Its bounds on time and memory: less may run beside the next try.
  'TIMEOUT_EXCEEDED',
  'TOO_SLOW',
  'MEMORY_LIMIT_EXCEEDED',
  'CANNOT_ALLOCATE_MEMORY',
  // Load.
  'TOO_MANY_SIMULTANEOUS_QUERIES',
  'CANNOT_SCHEDULE_TASK',
  'SERVER_OVERLOADED',
  'TOO_MANY_PARTS',
  'NOT_ENOUGH_SPACE',
  'DEADLOCK_AVOIDED',
  // It shuts down, or an operator ended the statement.
  'QUERY_WAS_CANCELLED',
  'ABORTED',
  // Its own network, Keeper and replicas.
  'NETWORK_ERROR',
  'SOCKET_TIMEOUT',
  'ALL_CONNECTION_TRIES_FAILED',
  'KEEPER_EXCEPTION',
  'NO_ZOOKEEPER',
  'TABLE_IS_READ_ONLY',
  'ALL_REPLICAS_ARE_STALE',
  'NO_REPLICA_HAS_PART',
  'TOO_FEW_LIVE_REPLICAS',
  'REPLICA_IS_NOT_IN_QUORUM',
  'UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE',
  'UNKNOWN_STATUS_OF_INSERT',
])

// What a proxy says while ClickHouse restarts, is too busy, or does not answer it.
const passingStatuses: ReadonlySet<number> = new Set([408, 429, 502, 503, 504])

const passingCodes: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'EAI_AGAIN',
  'ENOTFOUND',
  'ERR_STREAM_PREMATURE_CLOSE',
  // A compressed answer that ended in the middle.
  'Z_BUF_ERROR',
])

// Of a refused insert ClickHouse says what it read, so its text is passed on only where it cannot be about rows.
const rowlessTypes: ReadonlySet<string> = new Set([
  'UNKNOWN_TABLE',
  'UNKNOWN_DATABASE',
  'UNKNOWN_SETTING',
  'NO_SUCH_COLUMN_IN_TABLE',
  'SYNTAX_ERROR',
  'ACCESS_DENIED',
  'AUTHENTICATION_FAILED',
  'REQUIRED_PASSWORD',
])

/** Whether a text holds an exception as ClickHouse words it. */
export function holdsException(text: string): boolean {
  return /^Code: \d+\. DB::/m.test(text)
}

/** The error of an answer that is none of success. `insertInto` names the table where the answer is about its rows. */
export function answerError(status: number, text: string, insertInto?: string): TablesError {
  const parsed = holdsException(text) ? parseError(text) : undefined
  if (!(parsed instanceof ClickHouseError)) {
    return new TablesError(`status ${status} from something that does not answer as ClickHouse`, {
      retryable: passingStatuses.has(status),
    })
  }
  const { type = 'UNKNOWN' } = parsed
  const retryable = passingTypes.has(type)
  const mayQuoteRows = insertInto !== undefined && !retryable && !rowlessTypes.has(type)
  const message = mayQuoteRows ? refusedRows(insertInto, type, parsed.message) : inOneLine(parsed.message)
  return new TablesError(message, { retryable, type })
}

/** The error of a request that got no whole answer. `server` is the host and port. */
export function connectionError(cause: unknown, server: string): TablesError {
  if (isSilence(cause)) {
    return new TablesError(`ClickHouse at ${server} was silent for too long`, { retryable: true })
  }
  const code = codeOf(cause)
  return new TablesError(`no answer from ClickHouse at ${server}: ${code ?? 'the request failed'}`, {
    retryable: code !== undefined && passingCodes.has(code),
  })
}

/**
 * Whether a read is worth sending again at once: its connection was refused or cut, or it met a replica that is behind,
 * and the next one may not be.
 */
export function isWorthAnotherRead(cause: unknown): boolean {
  if (cause instanceof TablesError) return cause.type === 'REPLICA_IS_NOT_IN_QUORUM'
  const code = codeOf(cause)
  return !isSilence(cause) && code !== undefined && passingCodes.has(code)
}

// The client has no code for the one error that it makes itself.
function isSilence(cause: unknown): boolean {
  return cause instanceof Error && cause.message === 'Timeout error.'
}

function codeOf(cause: unknown): string | undefined {
  return cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : undefined
}

function refusedRows(table: string, type: string, message: string): string {
  const row = /\(at row (\d+)\)/.exec(message)?.[1]
  return `ClickHouse refused the rows for ${table}: ${type}${row === undefined ? '' : ` at row ${row}`}`
}

function inOneLine(message: string): string {
  return message.trim().replaceAll(/\s+/g, ' ').slice(0, 500)
}
