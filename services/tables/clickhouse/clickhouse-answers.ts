/** Sends a statement once, and reads its answer: as text, or as it comes. */
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client'
import { type Statement, TablesError } from '../port.ts'
import { answerError } from './clickhouse-errors.ts'

export interface Request extends Statement {
  settings: ClickHouseSettings
  /** The form of the statement, if it is not plain text. */
  contentType?: string
  /** Rows, made anew for each attempt. */
  values?: () => Readable
  /** The table whose rows an error might contain. */
  insertInto?: string
  signal: AbortSignal | undefined
}

/** Rejects with `TablesError` if the answer is not a success, and with the client's error if none came. */
export async function answerOf(client: ClickHouseClient, request: Request): Promise<string> {
  const { insertInto, signal } = request
  const answer = await execute(client, request)
  const body = await textOf(answer.stream, signal)
  const status = answer.http_status_code ?? 0
  if (hasFailed(answer)) throw answerError(status, body, insertInto)
  return body
}

/** The same for the answer's bytes, as they come. */
export async function streamOf(client: ClickHouseClient, request: Request): Promise<Readable> {
  const answer = await execute(client, request)
  if (!hasFailed(answer)) return answer.stream
  throw answerError(answer.http_status_code ?? 0, await textOf(answer.stream, request.signal))
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
    ...(values && { values: values() }),
    ...(signal && { abort_signal: signal }),
  })
}

/** Reads to the end. The client itself listens to the signal only until the headers have come. */
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

export function abandoned(): TablesError {
  return new TablesError('the caller no longer waits for the statement', { retryable: false })
}
