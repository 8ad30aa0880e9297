/**
 * Errors between us and a ClickHouse server, as `TablesError`. Pure.
 *
 * `retryable` is true for failures that can pass: a connection that was refused, cut or silent, a temporary status
 * from a proxy, and ClickHouse's errors for load, time, memory, its network, and tables that are just exchanged. A wrong statement stays wrong.
 *
 * `type` is set only if ClickHouse itself answered. So TIMEOUT_EXCEEDED means that the server says that it ended the
 * statement. After a cut or silent connection the outcome of the statement is unknown.
 *
 * Messages contain neither rows nor credentials. The chain of causes might, so it is not passed on.
 */
import { ClickHouseError, parseError } from '@clickhouse/client'
import { TablesError } from '../port.ts'

/** Limits of time and memory. ClickHouse cancelled the statement, so it does not run any more. */
export const exceededBounds: ReadonlySet<string> = new Set([
  'TIMEOUT_EXCEEDED',
  'TOO_SLOW',
  'MEMORY_LIMIT_EXCEEDED',
  'CANNOT_ALLOCATE_MEMORY',
])

const passingTypes: ReadonlySet<string> = new Set([
  // At the next attempt the server may be less busy.
  ...exceededBounds,
  // Load, and the limits of a user: per hour, or at once.
  'TOO_MANY_SIMULTANEOUS_QUERIES',
  'QUOTA_EXCEEDED',
  'USER_SESSION_LIMIT_EXCEEDED',
  'CANNOT_SCHEDULE_TASK',
  'SERVER_OVERLOADED',
  'TOO_MANY_PARTS',
  'NOT_ENOUGH_SPACE',
  'DEADLOCK_AVOIDED',
  // The table was made anew while the statement looked for it. ClickHouse says this before the statement does anything.
  'TABLE_UUID_MISMATCH',
  // It shuts down, or an operator killed the statement.
  'QUERY_WAS_CANCELLED',
  'ABORTED',
  // The server's network.
  'NETWORK_ERROR',
  'SOCKET_TIMEOUT',
  'ALL_CONNECTION_TRIES_FAILED',
])

// Statuses of a proxy while ClickHouse restarts, is too busy, or does not answer.
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
])

// ClickHouse's error for a refused insert may quote rows. So its text is passed on only if it cannot be about rows.
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

const ownException = /^Code: \d+\. DB::/m
// ClickHouse's message for errors of its libraries, which its client's parser does not know.
const foreignException = /^(std|Poco)::[eE]xception\. Code: \d+, /m

/** Whether a text contains a ClickHouse exception. */
export function holdsException(text: string): boolean {
  return ownException.test(text) || foreignException.test(text)
}

/** The error of an answer that is not a success. `insertInto` names the table if the answer may be about its rows. */
export function answerError(status: number, text: string, insertInto?: string): TablesError {
  const exception = holdsException(text) ? exceptionOf(text) : undefined
  if (!exception) {
    return new TablesError(`status ${status} from something that is not ClickHouse`, {
      retryable: passingStatuses.has(status),
    })
  }
  const { type } = exception
  const isPassing = passingTypes.has(type)
  const mayQuoteRows = insertInto !== undefined && !isPassing && !rowlessTypes.has(type)
  const message = mayQuoteRows
    ? refusedRows(insertInto, type, exception.message)
    : inOneLine(exception.message)
  return new TablesError(message, { retryable: isPassing || isOfLostShard(exception), type })
}

/**
 * Whether another shard of a cluster ended while this server sent it rows or read its answer. The same error is a final one if a
 * file of this server ends too early.
 */
function isOfLostShard({ type, message }: { type: string; message: string }): boolean {
  return (
    type === 'ATTEMPT_TO_READ_AFTER_EOF' &&
    /Insertion status:|while (?:receiving packet from|reading from socket)/i.test(message)
  )
}

function exceptionOf(text: string): { type: string; message: string } | undefined {
  if (!ownException.test(text)) {
    const [, library = ''] = foreignException.exec(text) ?? []
    return { type: `${library.toUpperCase()}_EXCEPTION`, message: text }
  }
  const parsed = parseError(text)
  return parsed instanceof ClickHouseError
    ? { type: parsed.type ?? 'UNKNOWN', message: parsed.message }
    : undefined
}

/** The error of a request without a complete answer. `server` is the host and port. */
export function connectionError(cause: unknown, server: string): TablesError {
  if (isSilence(cause)) {
    return new TablesError(`ClickHouse at ${server} was silent for too long`, { retryable: true })
  }
  const code = codeOf(cause)
  return new TablesError(`no answer from ClickHouse at ${server}: ${code ?? 'the request failed'}`, {
    retryable: code !== undefined && passingCodes.has(code),
  })
}

/** Whether a read should be sent again at once: the connection was refused or cut, or a table was just made anew. */
export function isWorthAnotherRead(cause: unknown): boolean {
  if (cause instanceof TablesError) return cause.type === 'TABLE_UUID_MISMATCH'
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
