/**
 * Sends requests with credentials, pacing, a time limit per attempt, and retries limited in number and time.
 *
 * It retries what may succeed later: no response, 408, 429, 5xx. Any other status of 400 or above is final.
 */
import { type ErrorCode, errorCodes } from '../errors.ts'
import { ClientError, isRetryable } from './errors.ts'
import { baseHint, failureText, isUsualBase, lostCredentials, notThisApi } from './failures.ts'
import { createPacer, wholeNumber } from './pacer.ts'
import type { Runtime } from './runtime.ts'

export interface TransportOptions {
  /** The base address, including `/api/v1`. */
  baseUrl: string
  key: string
  secret: string
  /** Time limit of one attempt, from the first byte sent to the last byte received, in milliseconds. */
  attemptMsMax: number
  /** Attempts per request, including the first. */
  attemptsMax: number
  /** Time from the first failure of a request to its last attempt, in milliseconds. */
  retryMsMax: number
}

export interface Answer {
  /** 200, or 304 if an entity tag was given. */
  status: number
  headers: Headers
  text: string
  /** The address that answered, after redirects; empty if it is not known. */
  url: string
  /** When the successful attempt was sent, in Unix milliseconds. */
  sentAt: number
}

export interface OpenAnswer {
  headers: Headers
  body: ReadableStream<Uint8Array<ArrayBuffer>>
}

export interface Transport {
  /** Sends a GET for a path relative to the base, with its query. Rejects with `ClientError` or the signal's reason. */
  get(
    path: string,
    options?: { etag?: string | undefined; signal?: AbortSignal | undefined },
  ): Promise<Answer>
  /** The same for an answer that is no JSON and may be large. Its bytes end with an error if none comes for `attemptMsMax`. */
  open(path: string, options?: { signal?: AbortSignal | undefined }): Promise<OpenAnswer>
}

const backoffMsMin = 500
const backoffMsMax = 30_000

/** Creates a transport. It sends nothing before the first call. */
export function createTransport(options: TransportOptions, runtime: Runtime): Transport {
  const { key, secret, attemptMsMax, attemptsMax, retryMsMax } = options
  const { now, random, sleep } = runtime
  // As the addresses of responses are written, so that they can be compared.
  const base = new URL(options.baseUrl).href.replace(/\/+$/, '')
  // Use this form, because fetch drops it when a redirect leads to another origin. It would forward the API's own
  // headers.
  const authorization = `Bearer ${key}:${secret}`
  const pacer = createPacer(runtime)

  async function send(path: string, etag: string | undefined, signal: AbortSignal): Promise<Response> {
    const response = await runtime.fetch(`${base}${path}`, {
      headers: { authorization, ...(etag !== undefined && { 'if-none-match': etag }) },
      // The client handles the cache period itself. A second cache would only hide the age of a response.
      cache: 'no-store',
      signal,
    })
    pacer.learn(response.headers)
    return response
  }

  async function answerOf(response: Response, sentAt: number): Promise<Answer> {
    const { status, headers, url } = response
    return { status, headers, url, text: await response.text(), sentAt }
  }

  /** Bounds the work in time. What fails in it is a failure of the network, and ends the attempt. */
  async function bounded<T>(bound: BoundedSignal, signal: AbortSignal | undefined, work: () => Promise<T>) {
    bound.start()
    try {
      return await work()
    } catch (cause) {
      bound.release()
      signal?.throwIfAborted()
      const reason = bound.signal.aborted
        ? `none within the time limit of ${attemptMsMax} ms`
        : failureText(cause)
      throw new ClientError({
        code: 'network_failure',
        message: `no response from ${base}: ${reason}`,
        cause,
      })
    } finally {
      bound.stop()
    }
  }

  async function openOnce(path: string, signal: AbortSignal | undefined): Promise<OpenAnswer> {
    const bound = boundedSignal(attemptMsMax, signal)
    const sentAt = now()
    const response = await bounded(bound, signal, () => send(path, undefined, bound.signal))
    const reader = response.status === 200 ? response.body?.getReader() : undefined
    if (!reader) {
      const answer = await bounded(bound, signal, () => answerOf(response, sentAt))
      bound.release()
      throw errorOf(answer, base)
    }
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      async pull(controller) {
        const { done, value } = await bounded(bound, signal, () => reader.read())
        if (!done) return controller.enqueue(value as Uint8Array<ArrayBuffer>)
        bound.release()
        controller.close()
      },
      cancel(reason) {
        bound.release()
        return reader.cancel(reason)
      },
    })
    return { headers: response.headers, body }
  }

  async function tryOnce(path: string, etag: string | undefined, signal: AbortSignal | undefined) {
    const bound = boundedSignal(attemptMsMax, signal)
    const sentAt = now()
    const answer = await bounded(bound, signal, async () =>
      answerOf(await send(path, etag, bound.signal), sentAt),
    ).finally(bound.release)
    if (answer.status === 304 && etag !== undefined) return answer
    // Every body of this API is a JSON object.
    if (answer.status === 200 && /^\s*\{/.test(answer.text)) return answer
    throw errorOf(answer, base)
  }

  // Exponential backoff with full jitter, so that clients that failed together do not retry together.
  function backoffMs(failures: number): number {
    return random() * Math.min(backoffMsMax, backoffMsMin * 2 ** failures)
  }

  async function retried<T>(signal: AbortSignal | undefined, attempt: () => Promise<T>): Promise<T> {
    let firstFailureAt: number | undefined
    for (let failures = 0; ; ) {
      signal?.throwIfAborted()
      await pacer.admit(signal)
      try {
        return await attempt()
      } catch (error) {
        if (!(error instanceof ClientError) || !isRetryable(error)) throw error
        firstFailureAt ??= now()
        const waitMs = (error.retryAfterMs ?? 0) + backoffMs(++failures)
        if (failures >= attemptsMax || now() + waitMs - firstFailureAt > retryMsMax) throw error
        await sleep(waitMs, signal)
      }
    }
  }

  return {
    get: (path, { etag, signal } = {}) => retried(signal, () => tryOnce(path, etag, signal)),
    open: (path, { signal } = {}) => retried(signal, () => openOnce(path, signal)),
  }
}

type BoundedSignal = ReturnType<typeof boundedSignal>

/**
 * A signal that aborts with the given one, or this time after `start` without a `stop`. Call `release`, or the listener stays on the
 * given signal.
 */
function boundedSignal(msMax: number, signal: AbortSignal | undefined) {
  const controller = new AbortController()
  const follow = () => controller.abort(signal?.reason)
  let timer: ReturnType<typeof setTimeout> | undefined
  if (signal?.aborted) follow()
  signal?.addEventListener('abort', follow, { once: true })
  return {
    signal: controller.signal,
    start() {
      timer = setTimeout(() => controller.abort(), msMax)
    },
    stop: () => clearTimeout(timer),
    release() {
      signal?.removeEventListener('abort', follow)
    },
  }
}

function errorOf(answer: Answer, base: string): ClientError {
  const { status, headers, text, url } = answer
  const retryAfter = wholeNumber(headers.get('retry-after'))
  const rest = {
    status,
    requestId: headers.get('x-request-id'),
    retryAfterMs: retryAfter === null ? null : retryAfter * 1000,
  }
  const { code, message } = errorIn(text)
  if (isErrorCode(code)) {
    return new ClientError({ code, message: `${code}: ${message}${hintFor(code, url, base)}`, ...rest })
  }
  return new ClientError({
    code: 'unexpected_response',
    message:
      status >= 500 ? `status ${status} without an error of this API from ${base}` : notThisApi(answer, base),
    ...rest,
  })
}

/** Two errors of the API have causes that the API cannot see. */
function hintFor(code: ErrorCode, url: string, base: string): string {
  if (code === 'unauthorized') return lostCredentials(url, base)
  return code === 'not_found' && !isUsualBase(base) ? ` (${baseHint(base)})` : ''
}

function errorIn(text: string): { code?: unknown; message?: unknown } {
  try {
    return JSON.parse(text)?.error ?? {}
  } catch {
    return {}
  }
}

function isErrorCode(code: unknown): code is ErrorCode {
  return errorCodes.some(known => known === code)
}
