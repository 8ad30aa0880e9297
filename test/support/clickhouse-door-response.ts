/** How the ClickHouse door answers: results, exceptions and progress, in the headers and statuses of the server. */
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import type { DoorAnswer } from './clickhouse-door-engine.ts'

/** An exception that the door itself has to word; those of the engine come as text. */
export class DoorException extends Error {
  constructor(code: number, type: string, message: string) {
    super(`Code: ${code}. DB::Exception: ${message} (${type})`)
  }
}

export interface Respond {
  /** Ends the response with the answer of a statement. */
  answer(answer: DoorAnswer): void
  /** Ends the response with an exception. */
  fail(error: unknown): void
}

export interface ResponseOptions {
  queryId: string
  gzip: boolean
  progressMs: number | undefined
  monotonicMs: () => number
}

/** Starts to answer: with `progressMs`, progress headers go out until one of the two is called. */
export function respond(response: ServerResponse, options: ResponseOptions): Respond {
  const { queryId, gzip, progressMs, monotonicMs } = options
  const startedAt = monotonicMs()
  const baseHeaders = {
    'X-ClickHouse-Query-Id': queryId,
    'X-ClickHouse-Server-Display-Name': 'clickhouse-door',
    'X-ClickHouse-Timezone': 'UTC',
    'Content-Type': 'text/plain; charset=UTF-8',
  }
  const progress = progressMs === undefined ? undefined : startProgress()

  function startProgress(): { isStarted(): boolean; stop(): void } {
    let isStarted = false
    const timer = setInterval(() => {
      if (!isStarted) {
        // Node cannot send headers one by one, so these go around it; the connection ends with the response.
        response.socket?.write(`HTTP/1.1 200 OK\r\n${lines({ ...baseHeaders, Connection: 'close' })}`)
      }
      isStarted = true
      response.socket?.write(lines({ 'X-ClickHouse-Progress': counts({ rowsRead: 0, bytesRead: 0 }) }))
    }, progressMs)
    return { isStarted: () => isStarted, stop: () => clearInterval(timer) }
  }

  function counts({ rowsRead, bytesRead }: Pick<DoorAnswer, 'rowsRead' | 'bytesRead'>): string {
    return JSON.stringify({
      read_rows: String(rowsRead),
      read_bytes: String(bytesRead),
      // chDB does not count what it writes.
      written_rows: '0',
      written_bytes: '0',
      total_rows_to_read: '0',
      result_rows: '0',
      result_bytes: '0',
      elapsed_ns: String(Math.round((monotonicMs() - startedAt) * 1e6)),
    })
  }

  function end(status: number, headers: Record<string, string>, plain: Uint8Array): void {
    progress?.stop()
    const body = gzip ? gzipSync(plain, { level: 1 }) : plain
    const last = {
      ...headers,
      ...(gzip && { 'Content-Encoding': 'gzip' }),
      'Content-Length': String(body.length),
    }
    if (progress?.isStarted()) {
      response.socket?.write(`${lines(last)}\r\n`)
      response.socket?.end(body)
    } else {
      response.writeHead(status, { ...baseHeaders, ...last }).end(body)
    }
  }

  return {
    answer(answer) {
      end(200, { 'X-ClickHouse-Summary': counts(answer) }, answer.bytes)
    },
    fail(error) {
      const { code, text } = exceptionOf(error)
      const headers = {
        'X-ClickHouse-Exception-Code': String(code),
        'X-ClickHouse-Summary': counts({ rowsRead: 0, bytesRead: 0 }),
      }
      end(statusOf(code), headers, Buffer.from(text))
    },
  }
}

function exceptionOf(error: unknown): { code: number; text: string } {
  const message = error instanceof Error ? error.message : String(error)
  const code = /^Code: (\d+)\. DB::/.exec(message)?.[1]
  if (code === undefined) {
    return { code: 1001, text: `Code: 1001. DB::Exception: ${message} (STD_EXCEPTION) (version 26.7)\n` }
  }
  return { code: Number(code), text: `${message.trimEnd()} (version 26.7)\n` }
}

// The statuses that the server gives its errors; all others are 500.
const statuses: Readonly<Record<number, number>> = {
  // Texts that cannot be parsed, and columns and types that do not fit.
  6: 400,
  16: 400,
  25: 400,
  26: 400,
  27: 400,
  36: 400,
  38: 400,
  41: 400,
  44: 400,
  53: 400,
  62: 400,
  72: 400,
  117: 400,
  // Names that are unknown.
  46: 404,
  47: 404,
  50: 404,
  60: 404,
  63: 404,
  73: 404,
  81: 404,
  115: 404,
  159: 408,
  169: 413,
  48: 501,
  209: 503,
  439: 503,
  194: 401,
  192: 403,
  193: 403,
  497: 403,
  516: 403,
}

function statusOf(code: number): number {
  return statuses[code] ?? 500
}

function lines(headers: Record<string, string>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
}
