/**
 * A consumer that keeps a copy of all public campaigns by the loop of the documentation, before several query processes, as
 * behind a balancer: each page is asked of the next one. It counts what it fetches.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { vi } from 'vitest'
import type { Project } from '../../contracts/api/schemas.ts'
import { type LoopSettings, type Place, poll } from '../simulation/documented-loop.ts'

export interface PollingMirror {
  /** The campaigns by id, as they were fetched last. */
  campaigns: ReadonlyMap<string, Project>
  /** The ids that were fetched since the last `forgetFetched`, each once. */
  fetched(): string[]
  forgetFetched(): void
  /** Polls that were completed. */
  polls(): number
  /** Requests that were not answered with 200. */
  refused(): number
  /** The watermark with which the next poll begins. */
  since(): string | null
  /** From now on it asks these. */
  pointTo(apiUrls: readonly string[]): void
  /** Resolves when a poll that began after the call has fetched nothing. */
  untilIdle(): Promise<void>
  /** What another consumer gets that goes on with this watermark: the ids. */
  changedSince(watermark: string): Promise<string[]>
  /** A new copy by a walk of everything. */
  walk(): Promise<Map<string, Project>>
  stop(): Promise<void>
}

const pauseMs = 500
const pageSize = 100
// Only a hang takes this long, also on a busy machine.
const idleMsMax = 240_000

export function startPollingMirror(
  firstUrls: readonly string[],
  headers: Readonly<Record<string, string>>,
): PollingMirror {
  const stopping = new AbortController()
  const campaigns = new Map<string, Project>()
  const fetched = new Set<string>()
  let apiUrls = firstUrls
  let since: string | null = null
  let requests = 0
  let refused = 0
  let polls = 0
  let pollsBegun = 0
  // The latest poll, by its number, that has fetched nothing.
  let idlePoll = 0

  const settings: LoopSettings = {
    pageSize,
    async get(path) {
      const url = `${apiUrls[requests++ % apiUrls.length]}${path}`
      const response = await fetch(url, { headers }).catch(() => undefined)
      if (response?.ok) return response
      refused++
      await response?.arrayBuffer()
      return response ?? Response.error()
    },
    // It rejects when the mirror is stopped, which ends the loop that would wait for an answer for ever.
    wait: ms => delay(ms, undefined, { signal: stopping.signal }),
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const number = ++pollsBegun
      const place: Place = { copy: new Map(), since }
      await poll(place, settings)
      for (const [id, project] of place.copy) {
        campaigns.set(id, project)
        fetched.add(id)
      }
      since = place.since
      polls++
      if (place.copy.size === 0) idlePoll = number
      await settings.wait(pauseMs)
    }
  }
  const running = run().catch(error => {
    if (!stopping.signal.aborted) throw error
  })

  return {
    campaigns,
    fetched: () => [...fetched].sort(),
    forgetFetched: () => fetched.clear(),
    polls: () => polls,
    refused: () => refused,
    since: () => since,
    pointTo(urls) {
      apiUrls = urls
    },
    async untilIdle() {
      const begun = pollsBegun
      await vi.waitUntil(() => idlePoll > begun, { timeout: idleMsMax, interval: 50 })
    },
    async changedSince(watermark) {
      const place: Place = { copy: new Map(), since: watermark }
      await poll(place, settings)
      return [...place.copy.keys()].sort()
    },
    async walk() {
      for (;;) {
        const place: Place = { copy: new Map(), since: null }
        await poll(place, settings)
        // Otherwise its pages are of several moments.
        if (place.since !== null) return place.copy
      }
    },
    async stop() {
      stopping.abort()
      await running
    },
  }
}
