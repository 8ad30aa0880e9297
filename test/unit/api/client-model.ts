/**
 * A model of the service for client tests, with a small platform and virtual time: snapshots for one cache period, rows
 * read when their page is read, stamps that become visible late but within the commit horizon, watermarks that stand still
 * meanwhile, a rate limit, and failures.
 *
 * Time passes only while a caller sleeps or waits for a response. So a year takes a moment, and every run of a seed is
 * the same.
 */
import { gzipSync } from 'node:zlib'
import { basePath } from '../../../contracts/api/conventions.ts'
import { type ErrorCode, errorBody, errors } from '../../../contracts/api/errors.ts'
import { parseListQuery, parseRemovalsQuery } from '../../../contracts/api/parameters.ts'
import type { Project } from '../../../contracts/api/schemas.ts'
import { presentProject } from '../../../services/query/campaigns/campaign-fields.ts'
import { digestNumber, digestText } from '../../../services/query/lists/digest.ts'
import type { ListQuery } from '../../../services/query/lists/list-statements.ts'
import { createMemoryRateLimiter } from '../../../services/query/rate-limit/rate-limiter.ts'
import { detailRow } from '../../support/query/fake-tables.ts'

export const horizonMs = 5000
export const cacheMs = 60_000
export const startsAt = Date.parse('2026-03-01T12:00:00.250Z')
export const baseUrl = `https://api.example${basePath}`

/** One change of one campaign. */
export interface Happening {
  /** Milliseconds from the start to the stamp. */
  at: number
  /** From the stamp until readers can see the change; within the commit horizon. */
  visibleAfterMs: number
  id: string
  /** The new state of the campaign; null: not public. */
  state: CampaignState | null
}

export interface CampaignState {
  title: string
  category: string
  /** Days after the first of 2026. */
  launchDay: number
}

/** A time in which the watermark stands still, as while a statement of the fold runs. */
export interface Standstill {
  /** Milliseconds from the start. */
  at: number
  forMs: number
}

export interface ModelSettings {
  happenings: readonly Happening[]
  standstills?: readonly Standstill[]
  /** Since when it tells removals, in milliseconds from the start. Default: it does not. */
  removalsFrom?: number
  /** When the process that answers has removals switched off. */
  removalsOff?: Standstill
  /** Which lists have a digest. Default: all that may have one. */
  digests?: 'all' | 'of everything' | 'none'
  /** The whole copy that it offers: the watermark is read first, and then the campaigns. In milliseconds from the start. Default: none. */
  copy?: { at: number; readAfterMs: number; breaksOff: number }
  /** By request number. */
  latencyMs?: (request: number) => number
  /** The failure of a request, by request number. */
  fault?: (request: number) => 'network' | ErrorCode | undefined
  /** Whether all snapshots are lost before a request, by request number. */
  evicts?: (request: number) => boolean
  /** The process that answers a request, by request number. Each has its own snapshots, as without Redis. */
  process?: (request: number) => number
  requestsPerMinute?: number
}

export interface ServiceModel {
  now(): number
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  fetch: typeof fetch
  /** Paths and queries, relative to the base, in order. */
  requests: string[]
  /** Aborts at this moment, in milliseconds from the start. */
  endAt(ms: number): AbortSignal
  /** What a reader sees now, by id. */
  publicCampaigns(): Map<string, Project>
}

interface Visible {
  state: CampaignState
  updatedAt: number
}

interface Snapshot {
  id: string
  asOf: string
  ids: string[]
  /** Of a list without a category. */
  digest: string | undefined
  createdAt: number
  pages: Map<string, string>
}

export function createServiceModel(settings: ModelSettings): ServiceModel {
  const { latencyMs = () => 0, fault = () => undefined, evicts = () => false, process = () => 0 } = settings
  const { standstills = [], removalsFrom, removalsOff, digests = 'all', copy } = settings
  const timeline = settings.happenings
    .map(happening => ({ ...happening, stamp: startsAt + happening.at }))
    .sort((a, b) => a.stamp + a.visibleAfterMs - (b.stamp + b.visibleAfterMs))
  const visible = new Map<string, Visible>()
  /** When each campaign left. */
  const left = new Map<string, number>()
  const snapshots = new Map<string, Snapshot>()
  const requests: string[] = []
  const alarms: { at: number; controller: AbortController }[] = []
  let time = startsAt
  let happened = 0
  let snapshotsTaken = 0
  let downloads = 0
  const limiter = createMemoryRateLimiter(
    { limit: settings.requestsPerMinute ?? 120, windowMs: 60_000 },
    { bucketsMax: 1, now: () => time },
  )

  function advance(ms: number): void {
    time += ms
    for (; ; happened++) {
      const next = timeline[happened]
      if (next === undefined || next.stamp + next.visibleAfterMs > time) break
      if (next.state) visible.set(next.id, { state: next.state, updatedAt: next.stamp })
      else if (visible.delete(next.id)) left.set(next.id, next.stamp)
      if (next.state) left.delete(next.id)
    }
    for (const { at, controller } of alarms) {
      if (time >= at) controller.abort(new Error('the time is over'))
    }
  }
  advance(0)

  function projectOf(id: string, { state, updatedAt }: Visible): Project {
    const { title, category, launchDay } = state
    const [launch_date, updated_at] = [Date.UTC(2026, 0, 1 + launchDay), updatedAt].map(moment =>
      new Date(moment).toISOString().replace('T', ' ').slice(0, -1),
    ) as [string, string]
    return presentProject({ ...detailRow, campaign_id: id, title, category, launch_date, updated_at }, time)
  }

  function idsOf({ category, updatedSince }: ListQuery): string[] {
    return [...visible]
      .filter(([, { state, updatedAt }]) => {
        return (category === null || state.category === category) && updatedAt >= (updatedSince ?? 0)
      })
      .sort(
        ([a, { state: left }], [b, { state: right }]) => right.launchDay - left.launchDay || (a < b ? -1 : 1),
      )
      .map(([id]) => id)
  }

  /** The first downloads break off. */
  function wholeCopy({ at, readAfterMs, breaksOff }: NonNullable<ModelSettings['copy']>): Response {
    const readAt = startsAt + at + readAfterMs
    const then = new Map<string, Visible>()
    for (const { id, state, stamp, visibleAfterMs } of timeline) {
      if (stamp + visibleAfterMs > readAt) break
      if (state) then.set(id, { state, updatedAt: stamp })
      else then.delete(id)
    }
    const texts = { description: 'd', risks: 'r', rewards: [] }
    const lines = [...then].map(([id, found]) => `${JSON.stringify({ ...projectOf(id, found), ...texts })}\n`)
    const whole = gzipSync(lines.join(''))
    const bytes = downloads++ < breaksOff ? whole.subarray(0, whole.length / 2) : whole
    return new Response(bytes, {
      headers: { 'x-data-as-of': new Date(watermark(startsAt + at)).toISOString() },
    })
  }

  function watermark(at = time): number {
    const standing = standstills.map(({ at, forMs }) => ({ from: startsAt + at, to: startsAt + at + forMs }))
    const stoodSince = standing.flatMap(({ from, to }) => (from <= at && at < to ? from : []))
    return Math.min(at, ...stoodSince) - horizonMs
  }

  function digestNow(): string {
    let sum = 0n
    for (const [id, { updatedAt }] of visible) sum += digestNumber(id, updatedAt)
    return digestText(visible.size, sum)
  }

  function tellsDigest({ updatedSince }: ListQuery): boolean {
    return digests === 'all' || (digests === 'of everything' && updatedSince === null)
  }

  function removedIds({ updatedSince }: ListQuery): string[] {
    const since = Math.max(updatedSince ?? 0, startsAt + (removalsFrom ?? 0))
    return [...left]
      .filter(([, at]) => at >= since)
      .sort(([a, at], [b, other]) => at - other || (a < b ? -1 : 1))
      .map(([id, at]) => JSON.stringify({ id, updated_at: new Date(at).toISOString() }))
  }

  function list(path: string, process: number): Response {
    if (path.startsWith('/exports/')) {
      const isMade = copy !== undefined && time >= startsAt + copy.at + copy.readAfterMs
      return isMade ? wholeCopy(copy) : refusal('not_found')
    }
    const isOfRemovals = path.startsWith('/removals')
    const offSince = startsAt + (removalsOff?.at ?? Infinity)
    const isOff = time >= offSince && time < offSince + (removalsOff?.forMs ?? 0)
    if (isOfRemovals && (removalsFrom === undefined || isOff)) return refusal('not_found')
    const parsed = (isOfRemovals ? parseRemovalsQuery : parseListQuery)(path.split('?')[1] ?? '')
    if ('fault' in parsed) return refusal('invalid_parameter')
    const { limit, offset, ...query } = parsed.parameters
    const key = JSON.stringify([process, isOfRemovals, query])
    let snapshot = snapshots.get(key)
    if (!snapshot || time >= snapshot.createdAt + cacheMs) {
      const asOf = new Date(watermark()).toISOString()
      const id = `snapshot ${++snapshotsTaken}`
      snapshot = {
        id,
        asOf,
        ids: (isOfRemovals ? removedIds : idsOf)(query),
        digest: isOfRemovals || query.category !== null ? undefined : digestNow(),
        createdAt: time,
        pages: new Map(),
      }
      snapshots.set(key, snapshot)
    }
    const { id, asOf, ids, digest, createdAt, pages } = snapshot
    const body =
      pages.get(path) ?? JSON.stringify((isOfRemovals ? removalsPageOf : pageOf)(ids, limit, offset))
    pages.set(path, body)
    return answer(body, createdAt, {
      'x-data-as-of': asOf,
      'x-snapshot-id': id,
      ...(offset === 0 && tellsDigest(query) && digest !== undefined && { 'x-data-digest': digest }),
    })
  }

  function pageOf(ids: readonly string[], limit: number, offset: number): object {
    const data = ids.slice(offset, offset + limit).flatMap(id => {
      const found = visible.get(id)
      return found ? [projectOf(id, found)] : []
    })
    return { data, pagination: { total: ids.length, limit, offset, has_more: offset + limit < ids.length } }
  }

  function removalsPageOf(ids: readonly string[], limit: number, offset: number): object {
    return {
      data: ids.slice(offset, offset + limit).map(text => JSON.parse(text)),
      pagination: { total: ids.length, limit, offset, has_more: offset + limit < ids.length },
      kept_since: new Date(startsAt + (removalsFrom ?? 0)).toISOString(),
    }
  }

  function answer(body: string, createdAt: number, more: Record<string, string> = {}): Response {
    const headers = {
      'cache-control': `private, max-age=${Math.floor(cacheMs / 1000)}`,
      age: String(Math.ceil((time - createdAt) / 1000)),
      ...more,
    }
    return new Response(body, { headers })
  }

  return {
    now: () => time,
    requests,
    publicCampaigns: () => new Map([...visible].map(([id, found]) => [id, projectOf(id, found)])),

    async sleep(ms, signal) {
      signal?.throwIfAborted()
      advance(ms)
      signal?.throwIfAborted()
    },

    endAt(ms) {
      const controller = new AbortController()
      alarms.push({ at: startsAt + ms, controller })
      return controller.signal
    },

    async fetch(input) {
      const path = String(input).slice(baseUrl.length)
      const number = requests.push(path) - 1
      if (evicts(number)) snapshots.clear()
      // The response is computed after half the time.
      advance(Math.floor(latencyMs(number) / 2))
      const decision = await limiter.hit('key')
      const failure = decision.allowed ? fault(number) : 'rate_limited'
      if (failure === 'network') throw new TypeError('the connection was lost')
      const response = failure === undefined ? list(path, process(number)) : refusal(failure)
      response.headers.set('x-ratelimit-remaining', String(decision.remaining))
      const resetAt = Math.ceil((time + decision.delayMs) / 1000)
      response.headers.set('x-ratelimit-reset', String(resetAt))
      if (failure === 'rate_limited') {
        response.headers.set('retry-after', String(Math.ceil(decision.delayMs / 1000)))
      }
      advance(Math.ceil(latencyMs(number) / 2))
      return response
    },
  }
}

function refusal(code: ErrorCode): Response {
  return Response.json(errorBody(code), { status: errors[code].status })
}
