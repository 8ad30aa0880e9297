/**
 * The limit and the caches as they are run, at their real sizes: two query processes over one Redis, asked for a little
 * over a minute, while pledges keep coming. One key asks calmly and then floods both processes; another one looks
 * whether both say the same. All that the tests judge by is what the clients saw.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { openKafkaWriter } from '../../services/log/kafka/writer.ts'
import type { EventWriter } from '../../services/log/port.ts'
import type { Deployment } from '../support/deployment.ts'
import { silent } from '../support/kafka/topics.ts'
import { issueCredentials, untilDrained, untilLeads } from '../support/kickstarter.ts'
import { useLocalDeployment } from '../support/local-deployment.ts'
import { campaignEvent, newRecordOf, pledgeEvent } from '../support/sample-events.ts'
import type { ServiceProcess } from '../support/service-process.ts'
import type { LocalServices } from '../support/local-services.ts'

const limit = 120
const windowMs = 60_000
const calmMs = 45_000
const floodMs = 25_000
const clientsPerProcess = 2

/** What a client saw. Times are Unix ms: what happened to the request happened between them. */
interface Exchange {
  sentAt: number
  receivedAt: number
  status: number
  headers: Headers
  body: string
}

interface Look extends Exchange {
  path: string
}

let services: LocalServices
let deployment: Deployment
let queries: ServiceProcess[]
const calm: Exchange[] = []
const flood: Exchange[] = []
const looks: Look[] = []

describe('two query processes over one Redis, for more than a minute', () => {
  useLocalDeployment({
    prepare: async local => {
      ;({ services, deployment } = local)
      const projector = await deployment.startProjector()
      const writer = await openKafkaWriter(
        { brokers: [services.addresses.kafka], clientId: 'pledgeview-test', topicPrefix: '' },
        { logger: silent },
      )
      try {
        await writer.append([newRecordOf(campaignEvent({ campaign_id: 'a', slug: 'a' }))])
        await untilLeads(projector)
        await untilDrained(projector)
        // A Redis that does not answer within 150 ms counts as unavailable, and then each process limits alone. A machine that stood
        // still for so long says nothing about two processes over one Redis. So they are watched again, with other keys.
        for (let watch = 1; watch === 1 || (watch <= watchesMax && (await hadOutage())); watch++) {
          await watchOnce(writer, [
            await issueCredentials(deployment.command, `flooding-${watch}`),
            await issueCredentials(deployment.command, `looking-${watch}`),
          ])
        }
      } finally {
        await writer.close()
      }
    },
    msMax: 600_000,
  })

  const hits = () => [...calm, ...flood]
  const admitted = () => hits().filter(({ status }) => status === 200)
  const refused = () => flood.filter(({ status }) => status === 429)

  test(`no more than ${limit} requests are admitted in any 60 s`, () => {
    expect(hits().filter(({ status }) => status !== 200 && status !== 429)).toEqual([])
    for (const first of admitted()) {
      const until = first.sentAt + windowMs
      const surelyWithin = admitted().filter(hit => hit.sentAt >= first.sentAt && hit.receivedAt <= until)
      expect(surelyWithin.length).toBeLessThanOrEqual(limit)
    }
  })

  test(`none is refused while fewer than ${limit} were admitted in the 60 s before, and places come free`, () => {
    expect(refused().length).toBeGreaterThan(limit)
    for (const { sentAt, receivedAt } of refused()) {
      const perhapsWithin = admitted().filter(
        hit => hit.receivedAt >= sentAt - windowMs - clockMs && hit.sentAt <= receivedAt,
      )
      expect(perhapsWithin.length).toBeGreaterThanOrEqual(limit)
    }
    const floodEnd = Math.max(...flood.map(({ sentAt }) => sentAt))
    const left = calm.filter(({ receivedAt }) => receivedAt < floodEnd - windowMs - freeMsMax)
    expect(left.length).toBeGreaterThan(2)
    expect(admitted().length).toBeGreaterThanOrEqual(limit + left.length)
  })

  test('what remains counts down over both processes, one by one, and stays zero for the refused', () => {
    expect(new Set(hits().map(({ headers }) => headers.get('x-ratelimit-limit')))).toEqual(
      new Set([String(limit)]),
    )
    expect(calm.map(remaining)).toEqual(calm.map((_, index) => limit - 1 - index))
    expect(refused().map(remaining)).toEqual(refused().map(() => 0))
    for (const { sentAt, receivedAt, headers } of calm) {
      const reset = Number(headers.get('x-ratelimit-reset')) * 1_000
      expect(reset).toBeGreaterThan(sentAt - 1_000 - clockMs)
      expect(reset).toBeLessThanOrEqual(receivedAt + clockMs)
    }
  })

  test('a refusal names the second at which a request is admitted next', () => {
    const inOrder = admitted().toSorted((a, b) => a.sentAt - b.sentAt)
    const floodEnd = Math.max(...flood.map(({ sentAt }) => sentAt))
    let checked = 0
    for (const { sentAt, receivedAt, headers } of refused()) {
      const reset = Number(headers.get('x-ratelimit-reset')) * 1_000
      const retryAfterMs = Number(headers.get('retry-after')) * 1_000
      expect(Math.abs(reset - retryAfterMs - receivedAt)).toBeLessThan(
        1_000 + (receivedAt - sentAt) + clockMs,
      )
      if (reset > floodEnd) continue
      // Not sooner, but for the second's fraction.
      const surelyAfter = inOrder.find(hit => hit.sentAt >= receivedAt)
      if (surelyAfter) expect(surelyAfter.receivedAt).toBeGreaterThan(reset - 1_000 - clockMs)
      // Not later: whoever comes at that second is admitted, unless the place has gone to one before it.
      const perhapsAfter = inOrder.find(hit => hit.receivedAt >= sentAt)
      const inTime = flood.filter(hit => hit.sentAt >= reset).map(hit => hit.receivedAt)
      expect(perhapsAfter?.sentAt).toBeLessThanOrEqual(Math.min(...inTime))
      checked++
    }
    expect(checked).toBeGreaterThan(limit)
  })

  test('both give the same bytes, tag and watermark for a cache period, while what they would say changes', () => {
    for (const path of ['/projects', '/projects/a']) {
      const periods = periodsOf(path)
      expect(periods.length).toBeGreaterThanOrEqual(2)
      for (const [index, period] of periods.entries()) {
        expect(new Set(period.map(({ body }) => body)).size).toBe(1)
        expect(new Set(period.map(({ headers }) => headers.get('x-data-as-of'))).size).toBe(1)
        const next = periods[index + 1]
        if (next) {
          expect(lastSent(period)).toBeLessThanOrEqual(firstReceived(next))
          expect(backers(next)).toBeGreaterThan(backers(period) + 50)
        }
        expect(lastSent(period) - firstReceived(period)).toBeLessThanOrEqual(windowMs + clockMs)
      }
    }
    expect(periodsOf('/stats')).toHaveLength(1)
  })
})

// What a clock may be set right by within a minute, and rounding.
const clockMs = 20
// Within this much of becoming free a place is taken again by the flood, also on a busy machine.
const freeMsMax = 3_000

const watchesMax = 3

async function watchOnce(
  writer: EventWriter,
  [flooding, looking]: [Record<string, string>, Record<string, string>],
): Promise<void> {
  for (const seen of [calm, flood, looks]) seen.length = 0
  queries = [await deployment.startQuery(), await deployment.startQuery()]
  // They also start without Redis, and without keys, if these do not answer at once.
  for (const { opsUrl } of queries) {
    await vi.waitFor(
      async () => {
        const response = await fetch(`${opsUrl}/readyz`)
        const text = await response.text()
        expect([response.status, text]).toEqual([
          200,
          expect.stringContaining('limits are shared, caches are shared'),
        ])
      },
      { timeout: 60_000, interval: 50 },
    )
  }
  const ended = new AbortController()
  const beside = [pledge(writer, ended.signal), look(looking, ended.signal)]
  await askCalmly(flooding)
  await askInAFlood(flooding)
  ended.abort()
  await Promise.all(beside)
}

/** Whether one of the processes has lost Redis. Then both are stopped: what they cached alone would differ. */
async function hadOutage(): Promise<boolean> {
  if (!queries.some(({ output }) => output().includes('Redis is unavailable'))) return false
  console.log('Redis did not answer in time; the processes are watched again')
  await Promise.all(queries.map(query => query.stop()))
  return true
}

/** A request a second, to one process and the other in turn: half of the limit is spread over the window. */
async function askCalmly(credentials: Record<string, string>): Promise<void> {
  const end = now() + calmMs
  for (let n = 0; now() < end; n++) {
    calm.push(await ask(n, '/projects', credentials))
    await delay(1_000)
  }
}

/** More than any limit, to both processes at once. */
async function askInAFlood(credentials: Record<string, string>): Promise<void> {
  const end = now() + floodMs
  const client = async (n: number) => {
    while (now() < end) {
      flood.push(await ask(n, '/projects', credentials))
      await delay(25)
    }
  }
  await Promise.all(Array.from({ length: clientsPerProcess * queries.length }, (_, n) => client(n)))
}

/** Asks both processes at once for the same, again and again. */
async function look(credentials: Record<string, string>, signal: AbortSignal): Promise<void> {
  const askBoth = async (path: string) => {
    const seen = await Promise.all(queries.map((_, n) => ask(n, path, credentials)))
    looks.push(...seen.map(exchange => ({ ...exchange, path })))
  }
  await askBoth('/stats')
  while (!signal.aborted) {
    await Promise.all(['/projects', '/projects/a'].map(askBoth))
    await pause(2_500, signal)
  }
  await askBoth('/stats')
}

let pledges = 0

/** A pledge of a new backer, again and again: what an answer says is out of date before long. */
async function pledge(writer: EventWriter, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await writer.append([newRecordOf(pledgeEvent({ campaign_id: 'a', pledge_id: `p${pledges++}` }))])
    await pause(250, signal)
  }
}

async function ask(n: number, path: string, credentials: Record<string, string>): Promise<Exchange> {
  const sentAt = now()
  const response = await fetch(`${queries[n % queries.length]?.apiUrl}${path}`, { headers: credentials })
  const receivedAt = now()
  return {
    sentAt,
    receivedAt,
    status: response.status,
    headers: response.headers,
    body: await response.text(),
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined)
}

/** Unix ms by a clock that is not set back. */
function now(): number {
  return performance.timeOrigin + performance.now()
}

function remaining({ headers }: Exchange): number {
  return Number(headers.get('x-ratelimit-remaining'))
}

/** What was seen of a path, by tag, in the order in which the tags were first seen. */
function periodsOf(path: string): Look[][] {
  const seen = looks.filter(look => look.path === path)
  for (const { status } of seen) expect(status).toBe(200)
  const byTag = Map.groupBy(seen, ({ headers }) => headers.get('etag'))
  return [...byTag.values()].toSorted((a, b) => firstReceived(a) - firstReceived(b))
}

function firstReceived(period: readonly Look[]): number {
  return Math.min(...period.map(({ receivedAt }) => receivedAt))
}

function lastSent(period: readonly Look[]): number {
  return Math.max(...period.map(({ sentAt }) => sentAt))
}

function backers(period: readonly Look[]): number {
  return Number(/"backer_count":(\d+)/.exec(period[0]?.body ?? '')?.[1])
}
