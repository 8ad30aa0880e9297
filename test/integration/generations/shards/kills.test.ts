/**
 * A rebuild of two real shards is killed between the two swaps and in other places. Meanwhile readers ask the API: they see every
 * campaign, no total of what was shown gets smaller, and a mirror that polls misses nothing.
 *
 * PLEDGEVIEW_TEST_SEED repeats the places of the kills.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../../contracts/events/event.ts'
import { hashSecret } from '../../../../services/api-keys/credentials.ts'
import { abortRebuild, dropPrevious, rebuildStatus } from '../../../../services/generations/rebuilds.ts'
import { completeSwap } from '../../../../services/generations/swap/swap.ts'
import type { Stats } from '../../../../services/query/endpoints/stats.ts'
import { type QueryService, startQueryService } from '../../../../services/query/service.ts'
import { memoryState } from '../../../../services/query/shared-state.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import { createMetrics } from '../../../../services/runtime/ops/metrics.ts'
import { sleep } from '../../../../services/runtime/sleep.ts'
import { holdTablesIdentity } from '../../../../services/tables/identity.ts'
import type { Tables } from '../../../../services/tables/port.ts'
import { type Place, poll } from '../../../simulation/documented-loop.ts'
import { spoiltTitle } from '../../../support/damage.ts'
import { obstructed } from '../../../support/faulty-tables.ts'
import { readModelOf } from '../../../support/model.ts'
import { expectedReading, readViews } from '../../../support/model-tables.ts'
import { pepper } from '../../../support/query-app.ts'
import { intBetween, randomOf } from '../../../support/random.ts'
import { platformHistory, type RebuildableModel } from '../../../support/rebuilds.ts'
import { apiKeyEvent, pledgeEvent } from '../../../support/sample-events.ts'
import type { ShardRebuildArguments } from '../../../support/shard-rebuild-child.ts'
import { onShards, openRebuildableShards, swappedShards } from '../../../support/shard-rebuilds.ts'
import { type ShardServers, startShards } from '../../../support/shards.ts'

// A rebuild takes half a minute beside other suites. Only a hang takes this long.
vi.setConfig({ testTimeout: 480_000 })

const childScript = new URL('../../../support/shard-rebuild-child.ts', import.meta.url)
const seed = process.env.PLEDGEVIEW_TEST_SEED ?? '20180101'
const key = 'pv_live_0123456789abcdefghijklmnop'
const secret = 'a secret of the tests'
const foldMsMax = 20_000
// The traffic goes on while a busy machine folds, and names few campaigns again and again. In pieces of ten, what waits would be
// hundreds of statements. And a statement that took longer than half of the horizon would be repeated.
const settings = { PLEDGEVIEW_FOLD_MS_MAX: String(foldMsMax), PLEDGEVIEW_FOLD_CAMPAIGNS_MAX: '500' }
const config = readConfig({
  PLEDGEVIEW_FOLD_MS_MAX: String(foldMsMax),
  PLEDGEVIEW_PLATFORM_CURRENCY: 'USD',
  PLEDGEVIEW_CACHE_MS: '1000',
  PLEDGEVIEW_STATS_CACHE_MS: '1000',
  PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '100000',
})

let servers: ShardServers
let live: RebuildableModel
let query: QueryService
let apiUrl: string
let events: ChangeEvent[]
/** Ends the readers and the traffic of a test that has failed. */
let endings: (() => Promise<unknown>)[]

// Each test has its own servers, so that one that fails says nothing about the other.
beforeEach(async () => {
  endings = []
  events = [
    ...platformHistory(40),
    apiKeyEvent({ key, account_id: 'reader', secret_hash: hashSecret(pepper, secret) }),
  ]
  servers = await startShards(2)
  await holdTablesIdentity(servers.tables, servers.databases, {
    PLEDGEVIEW_KEY_PEPPER: pepper,
    PLEDGEVIEW_PLATFORM_CURRENCY: 'USD',
  })
  live = await openRebuildableShards(servers, { settings })
  await live.append(events)
  await live.settled()
  query = await startQueryService({
    tables: servers.as('pledgeview_query'),
    databases: servers.databases,
    config,
    keyPepper: pepper,
    state: memoryState(config),
    metrics: createMetrics(),
    logger: pino({ level: 'silent' }),
  })
  apiUrl = `${await query.app.listen({ host: '127.0.0.1', port: 0 })}/api/v1`
})
afterEach(async () => {
  await Promise.allSettled(endings.map(end => end()))
  await query?.close()
  await live?.close()
  await servers?.stop()
})

const get = (path: string) =>
  fetch(`${apiUrl}${path}`, { headers: { 'x-api-key': key, 'x-api-secret': secret } })

/** Polls as a mirror does, and notes each total that gets smaller, until `stop`. */
function startReaders() {
  const mirror: Place = { copy: new Map(), since: null }
  const smaller: unknown[] = []
  let highest: Partial<Stats> = {}
  const spare = spareOf(expectedReading(readModelOf(events)).totals[0])
  let polls = 0
  let isOver = false
  const walk = () => poll(mirror, { pageSize: 7, get, wait: delay })

  async function look(): Promise<void> {
    await walk()
    polls++
    const response = await get('/stats')
    if (!response.ok) return
    const stats = ((await response.json()) as { data: Stats }).data
    for (const name of ['projects_total', 'total_raised', 'total_pledges'] as const) {
      if (Number(stats[name]) < Number(highest[name] ?? 0)) smaller.push([name, highest[name], stats[name]])
    }
    // Backers are counted in the ledger, which is ahead of the fold, after the pledges. None is missing whose pledge was shown
    // before, or is shown by the same answer: a cached answer comes again.
    if (stats.total_backers < (highest.total_pledges ?? 0) - spare)
      smaller.push(['total_backers', highest, stats])
    highest = stats
  }

  const running = (async () => {
    while (!isOver) {
      await look()
      await delay(200)
    }
  })()
  running.catch(() => undefined)
  async function stop(): Promise<void> {
    isOver = true
    await running
  }
  endings.push(stop)
  return { mirror, smaller, polls: () => polls, walk, stop }
}

function startTraffic() {
  let isOver = false
  const running = (async () => {
    for (let pledge = 0; !isOver; pledge++) {
      const event = pledgeEvent({ campaign_id: `c${1 + (pledge % 6)}`, pledge_id: `${events.length}` })
      events.push(event)
      await live.append([event])
      await delay(100)
    }
  })()
  running.catch(() => undefined)
  async function stop(): Promise<void> {
    isOver = true
    await running
  }
  endings.push(stop)
  return stop
}

/** How many more pledges than backers there are. It stays so, because each pledge of the traffic has a backer of its own. */
function spareOf(totals: unknown): number {
  const { total_pledges, total_backers } = totals as Record<'total_pledges' | 'total_backers', unknown>
  return Number(total_pledges) - Number(total_backers)
}

type Death = (call: { shard: string | null; text: string; isAfter: boolean }) => boolean

/** Runs a rebuild whose process dies when `dies` says so, and never runs a statement again. True if it died. */
async function rebuildUntil(dies: Death): Promise<boolean> {
  let isDead = false
  const mortal = (tables: Tables, shard: string | null) => {
    const look = (text: string, isAfter: boolean) => {
      isDead ||= dies({ shard, text, isAfter })
      if (isDead) throw new Error('killed')
    }
    return obstructed(tables, {
      before: ({ text }) => look(text, false),
      after: ({ text }) => look(text, true),
    })
  }
  const outcome = await live
    .rebuild({
      tables: mortal(live.tables, null),
      tablesOfShard: shard => mortal(shard.tables, shard.name),
    })
    .catch((error: unknown) => error)
  if (!isDead && outcome instanceof Error) throw outcome
  return isDead
}

async function expectTruth(): Promise<void> {
  await live.settled()
  expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
}

function untitled({ campaigns, ...others }: Awaited<ReturnType<typeof readViews>>) {
  return { ...others, campaigns: campaigns.map(campaign => ({ ...Object(campaign), title: '' })) }
}

/** Runs a rebuild as a process, and ends it with kill -9 when one shard is swapped and the other is not. */
async function killBetweenSwaps(): Promise<void> {
  const input: ShardRebuildArguments = {
    journal: live.journal,
    foldMsMax,
    servers: servers.servers.map(({ url, user, password }) => ({ url, user, password })),
  }
  const child = fork(childScript, [JSON.stringify(input)], { execArgv: [] })
  const exit = once(child, 'exit')
  const message = await Promise.race([once(child, 'message'), exit])
  expect(message[0]).toBe('between')
  child.kill('SIGKILL')
  await exit
}

test('killed between two swaps, it goes on with the other shard; until then one is new and one is old, and no reader loses anything', async () => {
  await onShards(live, spoiltTitle)
  const readers = startReaders()
  const stopTraffic = startTraffic()
  await vi.waitUntil(() => readers.polls() > 2, { timeout: 60_000 })
  await killBetweenSwaps()
  expect(await swappedShards(live)).toEqual(['shard-1'])
  expect(await rebuildStatus(live)).toMatchObject({ phase: 'swapping', isPreviousKept: false })
  await expect(abortRebuild(live.control)).rejects.toThrow('the tables are being swapped')
  // Projectors go on with both, whatever they find left of the swap.
  for (const { tables, databases } of live.cluster?.shards ?? []) {
    await completeSwap(tables, databases, { monotonicMs: () => performance.now(), sleep, isShard: true })
  }
  expect(await swappedShards(live)).toEqual(['shard-1'])
  const seen = readers.polls()
  await vi.waitUntil(() => readers.polls() > seen + 2, { timeout: 60_000 })
  await live.rebuild()
  expect(await swappedShards(live)).toEqual(['shard-1', 'shard-2'])
  await stopTraffic()
  await expectTruth()
  await readers.stop()
  expect(readers.smaller).toEqual([])
  await expectMirrored(readers)
  await live.rebuild({ kind: 'rollback' })
  // Nothing is lost by it, except the titles that were repaired.
  await live.settled()
  expect(untitled(await readViews(live.tables, live.databases))).toEqual(
    untitled(expectedReading(readModelOf(events))),
  )
  await live.rebuild({ kind: 'rollback' })
  await expectTruth()
  await dropPrevious(live)
})

test(`killed at any statement, several times, it goes on (seed ${seed})`, async () => {
  const random = randomOf(seed, 'shard rebuild kills')
  for (let round = 0; round < 2; round++) {
    const readers = startReaders()
    const stopTraffic = startTraffic()
    const deaths: string[] = []
    for (let kill = 0; kill < 3; kill++) {
      // The statements around the swaps, one of the first shard or of the second.
      const shard = `shard-${1 + (kill % 2)}`
      let left = intBetween(random, 1, 40)
      let isNear = false
      const died = await rebuildUntil(call => {
        isNear ||= call.shard === shard && call.text.includes('swap_permit_')
        if (!isNear || left-- > 0) return false
        deaths.push(`${call.shard} ${call.isAfter ? 'after' : 'before'} ${call.text.slice(0, 40)}`)
        return true
      })
      if (!died) break
    }
    console.log(`killed ${deaths.join('; ')}`)
    // After the permit of the first shard come more statements than the kill waits for.
    expect(deaths.length).toBeGreaterThan(0)
    if ((await rebuildStatus(live))?.phase !== 'rebuilt') await live.rebuild()
    await stopTraffic()
    await expectTruth()
    await readers.stop()
    expect(readers.smaller).toEqual([])
    await expectMirrored(readers)
    await dropPrevious(live)
  }
})

/** The mirror has what a new walk over everything has. */
async function expectMirrored({ mirror, walk }: ReturnType<typeof startReaders>): Promise<void> {
  const truth = async () => {
    const whole: Place = { copy: new Map(), since: null }
    await poll(whole, { pageSize: 100, get, wait: delay })
    return contentOf(whole)
  }
  await vi.waitFor(
    async () => {
      await walk()
      expect(contentOf(mirror)).toEqual(await truth())
      expect(mirror.copy.size).toBe(readModelOf(events).campaigns.size)
    },
    { timeout: 60_000, interval: 300 },
  )
}

function contentOf({ copy }: Place) {
  return Object.fromEntries(
    [...copy.values()].map(({ id, title, pledged_amount, backer_count, updated_at }) => [
      id,
      { title, pledged_amount, backer_count, updated_at },
    ]),
  )
}
