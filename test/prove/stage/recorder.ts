/** Asks the API, and records every answer in the log of the world. */
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import { projectDetailBodySchema } from '../../../services/query/endpoints/project.ts'
import { projectListBodySchema } from '../../../services/query/endpoints/projects.ts'
import { removalListBodySchema } from '../../../services/query/endpoints/removals.ts'
import { statsBodySchema } from '../../../services/query/endpoints/stats.ts'
import { messageOf } from '../../../services/runtime/message-of.ts'
import { keyHeaders } from '../../support/query/app.ts'
import { type AnyResponse, expectEveryPromise, readResponse } from '../../support/query/shape.ts'
import type { Answer, Disturbed, Entry, Row } from '../checker/log.ts'

export interface Request extends Pick<Answer, 'reader' | 'process' | 'path'> {
  credentials?: Credentials | undefined
  /** Default: 200. */
  expected?: readonly number[]
  /** Instead of the headers of the credentials. */
  headers?: Readonly<Record<string, string>>
  method?: string
  signal?: AbortSignal | undefined
  /** Asks only for what differs from its last answer: a 304 says that again, as of now. */
  isConditional?: boolean
}

export type Recorder = ReturnType<typeof createRecorder>

const answerMsMax = 40_000

/** Unix ms by a clock that is not set back. */
export function now(): number {
  return performance.timeOrigin + performance.now()
}

/** Adds to this log. `apiUrls`: those of the query processes, by their numbers. */
export function createRecorder(log: Entry[], apiUrls: readonly string[]) {
  const add = (entry: Entry) => void log.push(entry)
  // Most answers show the same rows again: each is kept once.
  const rows = new Map<string, Row>()
  // The last answer to each conditional request.
  const known = new Map<string, AnyResponse>()

  /** Resolves with `undefined` if there was no answer. */
  async function ask(request: Request): Promise<AnyResponse | undefined> {
    const { reader, process, path, credentials, expected = [200], method = 'GET', signal } = request
    const before = request.isConditional ? known.get(path) : undefined
    const headers = {
      ...(request.headers ?? (credentials ? keyHeaders(credentials) : {})),
      ...(before && { 'if-none-match': before.headers.etag ?? '' }),
    }
    const asked = { reader, process, path, expected, key: credentials?.key ?? '', sentAt: now() }
    const signals = [AbortSignal.timeout(answerMsMax), ...(signal ? [signal] : [])]
    const init = { method, headers, signal: AbortSignal.any(signals) }
    try {
      let response = await readResponse(await fetch(`${apiUrls[process]}${path}`, init))
      if (before && response.status === 304) response = sameAs(before, response)
      if (request.isConditional && response.status === 200) known.set(path, response)
      const receivedAt = now()
      const content = contentOf(path, response)
      add({ kind: 'answer', ...asked, receivedAt, ...content, rows: content.rows.map(kept) })
      return response
    } catch (error) {
      // A reader that stops has no answer, and expects none.
      if (signal?.aborted) return undefined
      const broken = `${messageOf(error)} ${error instanceof Error ? messageOf(error.cause) : ''}`
      add({ kind: 'answer', ...asked, receivedAt: now(), status: 0, ageMs: 0, rows: [], broken })
      return undefined
    }
  }

  function kept(row: Row): Row {
    const text = JSON.stringify(row)
    const one = rows.get(text) ?? row
    rows.set(text, one)
    return one
  }

  return {
    log,
    add,
    ask,
    /** While this runs, readers expect it. */
    async disturbed<T>(what: Disturbed['what'], work: () => Promise<T>, process?: number): Promise<T> {
      // The time until it ends counts at once: a log that breaks off has it, too.
      const entry: Disturbed = { kind: 'disturbed', what, process, from: now(), to: Number.MAX_SAFE_INTEGER }
      add(entry)
      return work().finally(() => {
        entry.to = now()
      })
    },
  }
}

/** What a 304 says: the body from before, with its own headers. */
function sameAs(before: AnyResponse, { headers }: AnyResponse): AnyResponse {
  const { age: _, ...kept } = before.headers
  return { status: 200, headers: { ...kept, ...headers }, body: before.body }
}

type Content = Omit<
  Answer,
  'kind' | 'reader' | 'process' | 'key' | 'path' | 'sentAt' | 'receivedAt' | 'expected'
>

// A list may come from an index that was refreshed so long ago (services/query/lists/list-follower.ts).
const indexMs = 1_000

/** What the log keeps of a response, and which promise it breaks. */
export function contentOf(path: string, response: AnyResponse): Content {
  const { status, body } = response
  const head = headOf(path, response)
  try {
    expectEveryPromise(response)
    return { ...head, rows: [], ...(status === 200 && bodyOf(path, JSON.parse(body))) }
  } catch (error) {
    return { ...head, rows: [], broken: messageOf(error) }
  }
}

/** The same without its body. */
export function headOf(path: string, { status, headers }: Omit<AnyResponse, 'body'>): Omit<Content, 'rows'> {
  const asOf = headers['x-data-as-of']
  return {
    status,
    // The header is rounded up.
    ageMs: 1_000 * Number(headers.age ?? 0) + (/^\/projects(\?|$)/.test(path) ? indexMs : 0),
    asOf: asOf === undefined ? undefined : Date.parse(asOf),
    snapshot: headers['x-snapshot-id'],
    digest: headers['x-data-digest'],
  }
}

function bodyOf(path: string, body: unknown): Partial<Content> {
  const [resource = ''] = path.split('?')
  if (resource === '/stats') return { stats: statsBodySchema.parse(body).data }
  if (resource === '/removals') {
    const { data, pagination, kept_since } = removalListBodySchema.parse(body)
    return { removals: data, page: pagination, keptSince: Date.parse(kept_since) }
  }
  if (resource !== '/projects') return { rows: [rowOf(projectDetailBodySchema.parse(body).data)] }
  const { data, pagination } = projectListBodySchema.parse(body)
  return { rows: data.map(rowOf), page: pagination }
}

/** The campaign without what depends on the day. */
export function rowOf<P extends Row & { days_remaining: number }>({ days_remaining: _, ...row }: P): Row {
  return row as Row
}
