/** Asks the API, checks what every response promises, and keeps account of statuses and of everything that is wrong. */
import { type AnyResponse, expectEveryPromise, readResponse } from '../query-shape.ts'
import type { Moment } from './judge.ts'

export interface Asked {
  response: AnyResponse
  moment: Moment & { startedAt: number }
  /** The parsed body; `undefined` where there is none. */
  body: unknown
}

export interface ApiClient {
  /**
   * One request. `expected` are the statuses that it may have; 500 is one of them while ClickHouse is away. Resolves with
   * `undefined` where there was no answer, or one that broke a promise; that is then among the faults.
   */
  ask(url: string, expected: readonly number[], init?: RequestInit): Promise<Asked | undefined>
  /** Something is wrong with what was served. */
  report(fault: string | undefined): void
  faults(): readonly string[]
  /** How often each status came. */
  statuses(): Readonly<Record<number, number>>
}

const answerMsMax = 40_000
// Enough to see what is wrong, however often it is.
const faultsMax = 20

/** `mayFail` tells whether ClickHouse was away at some time between the two (Unix ms). */
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
        // An answer of the cache was read when it was made; its age is cut to whole seconds.
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
