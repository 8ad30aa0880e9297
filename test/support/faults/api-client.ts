/** Calls the API, checks what every response promises, and counts statuses and faults. */
import { type AnyResponse, expectEveryPromise, readResponse } from '../query/shape.ts'
import type { Moment } from './judge.ts'

export interface Asked {
  response: AnyResponse
  moment: Moment & { startedAt: number }
  /** The parsed body; `undefined` if there is none. */
  body: unknown
}

export interface ApiClient {
  /**
   * Makes one request. `expected`: the statuses that it may have, 500 included while ClickHouse is unavailable. Resolves with
   * `undefined` if there was no answer, or if the answer broke a promise. A broken promise is added to the faults.
   */
  ask(url: string, expected: readonly number[], init?: RequestInit): Promise<Asked | undefined>
  /** Adds a fault of an answer. */
  report(fault: string | undefined): void
  faults(): readonly string[]
  /** How often each status came. */
  statuses(): Readonly<Record<number, number>>
}

const answerMsMax = 40_000
// Enough to see what is wrong, even if it happens very often.
const faultsMax = 20

/** `mayFail` tells whether ClickHouse was unavailable at some time between the two (Unix ms). */
export function createApiClient(mayFail: (from: number, to: number) => boolean): ApiClient {
  const faults: string[] = []
  const statuses: Record<number, number> = {}

  function report(fault: string | undefined): void {
    if (fault !== undefined && faults.length < faultsMax) faults.push(`${new Date().toISOString()} ${fault}`)
  }

  return {
    async ask(url, expected, init = {}) {
      const startedAt = Date.now()
      try {
        const signal = AbortSignal.timeout(answerMsMax)
        const response = await readResponse(await fetch(url, { ...init, signal }))
        const finishedAt = Date.now()
        const { status, headers } = response
        statuses[status] = (statuses[status] ?? 0) + 1
        expectEveryPromise(response)
        const isExpected = expected.includes(status) || (status === 500 && mayFail(startedAt, finishedAt))
        if (!isExpected) throw new Error(`status ${status}: ${response.body.slice(0, 200)}`)
        // A cached answer was read when it was made. Its age is rounded down to seconds.
        const ageMs = headers.age === undefined ? 0 : (Number(headers.age) + 1) * 1_000
        const moment = { startedAt, readSince: startedAt - ageMs, finishedAt }
        return { response, moment, body: response.body === '' ? undefined : JSON.parse(response.body) }
      } catch (error) {
        report(`${url}: ${error instanceof Error ? error.message : error}`)
        return undefined
      }
    },
    report,
    faults: () => faults,
    statuses: () => ({ ...statuses }),
  }
}

/** The snapshot that a page of a list comes from. Earlier versions of the service only show its watermark. */
export function snapshotOf({ response: { headers } }: Asked): string | undefined {
  return headers['x-snapshot-id'] ?? headers['x-data-as-of']
}
