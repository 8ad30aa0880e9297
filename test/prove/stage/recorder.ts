/** Asks the API, and records every answer in the log of the world. */
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import { projectDetailBodySchema } from '../../../services/query/endpoints/project.ts'
import { projectListBodySchema } from '../../../services/query/endpoints/projects.ts'
import { removalListBodySchema } from '../../../services/query/endpoints/removals.ts'
import { statsBodySchema } from '../../../services/query/endpoints/stats.ts'
import { messageOf } from '../../../services/runtime/message-of.ts'
import { keyHeaders } from '../../support/query/app.ts'
import { type AnyResponse, expectEveryPromise, readResponse } from '../../support/query/shape.ts'
import type { Answer, Disturbed, Entry, Log, Row } from '../checker/log.ts'

export interface Request {
  reader: string
  process: number
  path: string
  credentials?: Credentials
  /** Default: 200. */
  expected?: readonly number[]
  /** Instead of the headers of the credentials. */
  headers?: Readonly<Record<string, string>>
  method?: string
  signal?: AbortSignal | undefined
  /** Asks only for what differs from its last answer: a 304 says that again, as of now. */
  isConditional?: boolean
}

export interface Recorder {
  log: Log
  add(entry: Entry): void
  /** Resolves with `undefined` if there was no answer. */
  ask(request: Request): Promise<AnyResponse | undefined>
  /** While this runs, readers expect it. */
  disturbed<T>(what: Disturbed['what'], work: () => Promise<T>, process?: number): Promise<T>
  numberOf(row: object): number
  /** How often each status came. */
  statuses(): Readonly<Record<number, number>>
}

const answerMsMax = 40_000

/** Unix ms by a clock that is not set back. */
export function now(): number {
  return performance.timeOrigin + performance.now()
}

/** `apiUrls`: those of the query processes, by their numbers. */
export function createRecorder(apiUrls: () => readonly string[]): Recorder {
  const log: Log = { rows: [], entries: [] }
  const numbers = new Map<string, number>()
  const statuses: Record<number, number> = {}
  // The last answer to each conditional request.
  const known = new Map<string, AnyResponse>()

  function numberOf(shown: object): number {
    const { days_remaining: _, ...row } = shown as Row & { days_remaining?: number }
    const text = JSON.stringify(row)
    const number = numbers.get(text) ?? log.rows.push(row as Row) - 1
    numbers.set(text, number)
    return number
  }

  async function ask(request: Request): Promise<AnyResponse | undefined> {
    const { reader, process, path, credentials, expected = [200], method = 'GET', signal } = request
    const before = request.isConditional ? known.get(path) : undefined
    const headers = {
      ...(request.headers ?? (credentials ? keyHeaders(credentials) : {})),
      ...(before && { 'if-none-match': before.headers.etag ?? '' }),
    }
    const sentAt = now()
    const common = {
      kind: 'answer',
      reader,
      process,
      key: credentials?.key ?? '',
      path,
      sentAt,
      expected,
    } as const
    const timeout = AbortSignal.timeout(answerMsMax)
    let answer: Answer
    let response: AnyResponse | undefined
    try {
      const signals = signal ? AbortSignal.any([signal, timeout]) : timeout
      response = await readResponse(
        await fetch(`${apiUrls()[process]}${path}`, { method, headers, signal: signals }),
      )
      if (before && response.status === 304) response = sameAs(before, response)
      if (request.isConditional && response.status === 200) known.set(path, response)
      answer = { ...common, receivedAt: now(), ...contentOf(path, response, numberOf) }
    } catch (error) {
      // A reader that stops has no answer, and expects none.
      if (signal?.aborted) return undefined
      answer = {
        ...common,
        receivedAt: now(),
        status: 0,
        ageMs: 0,
        broken: `${messageOf(error)} ${error instanceof Error ? messageOf(error.cause) : ''}`,
      }
    }
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1
    log.entries.push(answer)
    return response
  }

  return {
    log,
    ask,
    numberOf,
    add: entry => void log.entries.push(entry),
    async disturbed(what, work, process) {
      const from = now()
      // The time until it ends counts at once: a log that breaks off has it, too.
      const entry = {
        kind: 'disturbed',
        what,
        from,
        to: Number.MAX_SAFE_INTEGER,
        ...(process !== undefined && { process }),
      } as const
      const place = log.entries.push(entry) - 1
      try {
        return await work()
      } finally {
        log.entries[place] = { ...entry, to: now() }
      }
    },
    statuses: () => ({ ...statuses }),
  }
}

/** What a 304 says: the body from before, with its own headers. */
function sameAs(before: AnyResponse, { headers }: AnyResponse): AnyResponse {
  const { age: _, ...kept } = before.headers
  return { status: 200, headers: { ...kept, ...headers }, body: before.body }
}

// A list may come from an index that was refreshed so long ago (services/query/lists/list-follower.ts).
const indexMs = 1_000

/** How long before it was asked for an answer was read, at most. The header is rounded up. */
export function ageOf(path: string, header: string | null | undefined): number {
  return 1_000 * Number(header ?? 0) + (/^\/projects(\?|$)/.test(path) ? indexMs : 0)
}

/** What the log keeps of a response, and which promise it breaks. */
export function contentOf(
  path: string,
  response: AnyResponse,
  numberOf: (row: object) => number,
): Omit<Answer, 'kind' | 'reader' | 'process' | 'key' | 'path' | 'sentAt' | 'receivedAt' | 'expected'> {
  const { status, headers, body } = response
  const asOf = headers['x-data-as-of']
  const snapshot = headers['x-snapshot-id']
  const digest = headers['x-data-digest']
  const common = {
    status,
    ageMs: ageOf(path, headers.age),
    ...(asOf !== undefined && { asOf: Date.parse(asOf) }),
    ...(snapshot !== undefined && { snapshot }),
    ...(digest !== undefined && { digest }),
  }
  try {
    expectEveryPromise(response)
    return { ...common, ...(status === 200 && bodyOf(path, JSON.parse(body), numberOf)) }
  } catch (error) {
    return { ...common, broken: messageOf(error) }
  }
}

function bodyOf(path: string, body: unknown, numberOf: (row: object) => number): Partial<Answer> {
  const [resource = ''] = path.split('?')
  if (resource === '/projects') {
    const { data, pagination } = projectListBodySchema.parse(body)
    return { rows: data.map(numberOf), page: pagination }
  }
  if (resource === '/removals') {
    const { data, pagination, kept_since } = removalListBodySchema.parse(body)
    return { removals: data, page: pagination, keptSince: Date.parse(kept_since) }
  }
  if (resource === '/stats') return { stats: statsBodySchema.parse(body).data }
  return { rows: [numberOf(projectDetailBodySchema.parse(body).data)] }
}
