/**
 * Direct answers: a request that needs nothing but memory is answered before the framework sees it. Pollers send the same
 * few requests again and again, so that is nearly every request.
 *
 * Promise: a direct answer has the same status, headers and body as the app's answer, and is counted, measured and logged
 * the same. A request gets one only if all of these hold, and otherwise the app handles it as if this were not here:
 * - The app has answered a GET of this very target from a cache entry.
 * - The key and its secret have just been verified, the key may read, and the limiter in memory has room for it.
 * - The entry is in the memory of this process, and has not expired.
 * - The request is well-formed and has no body, and the app is not closing.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { LRUCache } from 'lru-cache'
import { readScope } from '../../../contracts/api/conventions.ts'
import { isWellFormed } from '../../runtime/http/request-headers.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { nameRequest } from '../../runtime/traces.ts'
import type { ResponseCache } from '../cache/response-cache.ts'
import { operations } from '../endpoints/all.ts'
import { keptMsMax } from '../forgetting.ts'
import type { Admissions } from './admission.ts'
import { sendEntry } from './answer.ts'
import type { Publications } from './publications.ts'
import { finalStatus, type RequestLog } from './request-log.ts'

/** What the app found for a target. */
export interface KnownTarget {
  /** The pattern of the route. */
  route: string
  /** The key of the response cache. */
  key: string
  /** The parsed parameters, for the log. */
  parameters: object | null
}

export type DirectAnswers = ReturnType<typeof createDirectAnswers>

const targetsMax = 4_096
const targetLengthMax = 512

// A path, and parameters that the API has. Elsewhere a target may hold a secret, and then it is not kept: in another
// parameter, before the host, or after a hash.
const parameterNames = operations.flatMap(({ parameters: { query } }) => Object.keys(query?.shape ?? {}))
const keptTarget = new RegExp(`^/[^?#]*(?:\\?(?:(?:${parameterNames.join('|')})=[^&#]*(?:&|$))*)?$`)

/** Creates the direct answers of one app. No target is known yet. */
export function createDirectAnswers(
  admissions: Admissions,
  cache: ResponseCache,
  publications: () => Publications,
  requestLog: RequestLog,
  newRequestId: () => string,
  { now, monotonicMs, logger }: Pick<Runtime, 'now' | 'monotonicMs' | 'logger'>,
) {
  // A path may have the slug of a campaign that is gone. A target in use is learnt again whenever its entry has expired.
  const targets = new LRUCache<string, KnownTarget>({
    ...{ max: targetsMax, ttl: keptMsMax, ttlResolution: 0, perf: { now: monotonicMs } },
  })
  let isStopped = false

  function answerOf(request: IncomingMessage, response: ServerResponse, target: KnownTarget): boolean {
    const startedAt = monotonicMs()
    const apiKey = admissions.verifiedKey(request)
    if (!apiKey?.scopes.includes(readScope)) return false
    const entry = cache.peek(target.key)
    if (entry === undefined || entry instanceof Promise) return false
    // The last step that can fail, because it counts the request.
    const admission = admissions.admitNow(apiKey)
    if (admission === undefined) return false
    // Now it counts as a lookup.
    cache.find(target.key)
    const { route, parameters } = target
    const requestId = newRequestId()
    const notices = publications().noticesOf(route)
    const isDeprecated = 'deprecation' in notices
    const ifNoneMatch = request.headers['if-none-match']
    sendEntry(response, entry, { requestId, decision: admission.decision, notices, ifNoneMatch, now: now() })
    response.on('close', () => {
      const status = finalStatus(response)
      const answered = { id: requestId, method: 'GET', route, status, admission, parameters, isDeprecated }
      requestLog.report(answered, monotonicMs() - startedAt)
    })
    nameRequest(response, { id: requestId, method: 'GET', route })
    return true
  }

  return {
    /** Answers the request if it can. Otherwise it returns false, and nothing has happened. */
    answer(request: IncomingMessage, response: ServerResponse): boolean {
      if (isStopped || request.method !== 'GET' || response.destroyed) return false
      const target = targets.get(request.url ?? '')
      if (target === undefined || hasBody(request) || !isWellFormed(request)) return false
      try {
        return answerOf(request, response, target)
      } catch (error) {
        // The app meets the same fault, and has an answer and a log line for it.
        if (!response.headersSent) return false
        logger.error({ err: error }, 'a direct answer broke off')
        response.destroy()
        return true
      }
    },

    /** The app has answered a GET of this target from a cache entry. */
    learn(target: string, known: KnownTarget): void {
      if (target.length <= targetLengthMax && keptTarget.test(target)) targets.set(target, known)
    },

    forgetOld: () => targets.purgeStale(),
    forgetAll: () => targets.clear(),

    /** From now on the app handles every request, because it tells each client that it closes. */
    stop(): void {
      isStopped = true
      targets.clear()
    },
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
}
