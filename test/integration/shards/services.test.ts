/**
 * The services on a cluster of two servers: a projector that folds each shard, and a query process with the rights of its role.
 * While a shard is away, no answer shows less than there is.
 */
import { pino } from 'pino'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { hashSecret } from '../../../services/api-keys/credentials.ts'
import { readAccount, readUnfinished } from '../../../services/portal/account/accounts.ts'
import { announce } from '../../../services/portal/notices/announcement.ts'
import { findRunaways } from '../../../services/portal/notices/key-notices.ts'
import { openNotices } from '../../../services/portal/notices/notices.ts'
import { totalOf } from '../../../services/portal/usage/usage-view.ts'
import { startQueryService } from '../../../services/query/service.ts'
import { memoryState } from '../../../services/query/shared-state.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { holdTablesIdentity, writePurge } from '../../../services/tables/schema/identity.ts'
import { type ShardServers, startShards } from '../../support/clickhouse/shards.ts'
import { accountRecord } from '../../support/events/accounts.ts'
import { createMemoryLog } from '../../support/events/memory-log.ts'
import { apiKeyEvent, campaignEvent, newRecordOf, pledgeEvent } from '../../support/events/sample-events.ts'
import { type RunningProjector, startProjector } from '../../support/projector/running-projector.ts'
import { pepper } from '../../support/query/app.ts'
import type { AnyBody } from '../../support/query/service.ts'
import { readUsage } from '../../support/query/usage.ts'

// Only a hang takes this long. On a busy machine a server takes its time to start, and the pauses between tries grow meanwhile.
const drainMsMax = 240_000
// A wait may take as long, and a test has several.
vi.setConfig({ testTimeout: 2 * drainMsMax, hookTimeout: 2 * drainMsMax })
const campaigns = 40
const backers = 7
const key = 'pv_live_0123456789abcdefghijklmnop'
const secret = 'a secret of the tests'
const config = readConfig({
  PLEDGEVIEW_BATCH_MS_MAX: '20',
  PLEDGEVIEW_PLATFORM_CURRENCY: 'USD',
  // A shard is away in one test, however long it takes on a busy machine.
  PLEDGEVIEW_RETRY_MS_MAX: '600000',
  // The answers of one test are not those of the next.
  PLEDGEVIEW_CACHE_MS: '1000',
  PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '100000',
})
const logger = pino({ level: 'silent' })

let shards: ShardServers
let projector: RunningProjector
let query: Awaited<ReturnType<typeof startQuery>>
const log = createMemoryLog()

beforeAll(async () => {
  shards = await startShards(2)
  const { tables, databases } = shards
  await holdTablesIdentity(tables, databases, {
    PLEDGEVIEW_KEY_PEPPER: pepper,
    PLEDGEVIEW_PLATFORM_CURRENCY: 'USD',
  })
  append([...world(), keyEvent('ACTIVE')])
  projector = startProjector({
    ...{ reader: log.reader, tables, databases, shards: shards.shards, config, random: Math.random },
  })
  await drained()
  query = await startQuery(0)
})

afterAll(async () => {
  const ended = await Promise.allSettled([projector?.stop(), query?.close()])
  await shards?.stop()
  for (const one of ended) if (one.status === 'rejected') throw one.reason
})

test('the portal finds the contacts of keys, their usage, and no runaway', async () => {
  // On a busy machine the first statement over both shards may exceed its time.
  await vi.waitFor(async () => expect((await ask('/stats')).status).toBe(200), 60_000)
  const portal = shards.as('pledgeview_portal')
  const { databases } = shards
  const place = { tables: portal, databases, portalKey: '', notices: { add: async () => undefined } }
  const announcement = { name: 'v1-ends', subject: 'V1', text: 'Ends.', isDry: true }
  expect(await announce(place, announcement, Date.now())).toMatchObject({ addresses: 1, noted: 1 })
  expect(await findRunaways({ tables: portal, databases }, Date.now())).toEqual([])
  // What the query process has counted is there some seconds later.
  const answered = async () => totalOf((await readUsage(portal, databases, { key, now: Date.now() })).days).ok
  await vi.waitFor(async () => expect(await answered()).toBeGreaterThan(0), { timeout: drainMsMax })
})

test('the portal reads what the projector writes into its ledgers, on the shard where they are', async () => {
  const place = { tables: shards.as('pledgeview_portal'), databases: shards.databases }
  const notices = openNotices({ writer: { append: async records => log.append(records) }, ...place })
  log.append([accountRecord('acct', 'ada@example.com')])
  await vi.waitFor(
    async () => expect(await readAccount(place, 'acct')).toMatchObject({ email: 'ada@example.com' }),
    { timeout: drainMsMax },
  )
  log.append([accountRecord('acct', '')])
  await vi.waitFor(async () => expect(await readUnfinished(place, 0)).toEqual(['acct']), {
    timeout: drainMsMax,
  })
  await notices.removeSettled(0)
  expect(await notices.waiting(0)).toEqual([])
})

test('while a shard is away, an analyst gets no smaller count, and afterwards everything goes on', async () => {
  // The shard dies while the projector inserts these. What readers of the API see meanwhile is in test/prove.
  append(
    Array.from({ length: 400 }, (_, index) =>
      pledgeEvent({ campaign_id: `c${index % campaigns}`, pledge_id: `q${index}`, backer_id: 'b0' }),
    ),
  )
  await shards.servers[1]?.kill()
  const analyst = shards.as('pledgeview_analyst')
  for (const counted of [
    'count() FROM crowdfunding.campaigns',
    'total_backers FROM crowdfunding.platform_totals',
    'total_creators FROM crowdfunding.platform_totals',
  ])
    await expect(analyst.rows({ query: `SELECT ${counted}` }), counted).rejects.toMatchObject({
      retryable: true,
    })
  await shards.restart(1)
  await drained()
  const [folded] = await shards.tables.rows<{ pledges: number }>({
    query: 'SELECT sum(pledge_count) AS pledges FROM crowdfunding.campaigns',
  })
  expect(folded?.pledges).toBe(ids().flatMap(pledgesOf).length + 400)
})

test('an account has three active keys at most, because all keys are on one shard', async () => {
  append(Array.from({ length: 8 }, (_, n) => apiKeyEvent({ key: `pv_live_${n}`, account_id: 'many' })))
  await drained()
  const active = await Promise.all(
    shards.shards.map(({ tables }) =>
      tables.rows<{ keys: number }>({
        query: `SELECT count() AS keys FROM pledgeview.api_keys FINAL WHERE account_id = 'many' AND is_active`,
      }),
    ),
  )
  expect(active).toEqual([[{ keys: 3 }], [{ keys: 0 }]])
})

test('a query process forgets at a purge what it keeps', async () => {
  // The second server keeps no purges.
  const other = await startQuery(1)
  onTestFinished(other.close)
  const madeAt = async () => {
    const { status, body } = await ask('/stats', other)
    expect(status).toBe(200)
    return body.data.generated_at
  }
  const before = await vi.waitFor(madeAt, 60_000)
  expect(await madeAt()).toBe(before)
  await writePurge(shards.tables, shards.databases, 'the moment of a purge')
  // Long before the answer expires, which takes 300 s.
  await vi.waitFor(async () => expect(await madeAt()).not.toBe(before), 60_000)
})

test('a key that is revoked is refused', async () => {
  append([keyEvent('REVOKED')])
  await vi.waitFor(async () => expect((await ask('/projects')).status).toBe(401), 90_000)
})

function ids(): string[] {
  return Array.from({ length: campaigns }, (_, index) => `c${index}`)
}

function pledgesOf(id: string) {
  const number = Number(id.slice(1))
  return Array.from({ length: 1 + (number % 5) }, (_, index) =>
    pledgeEvent({ campaign_id: id, pledge_id: `p${index}`, backer_id: `b${(number + index) % backers}` }),
  ) as (ChangeEvent & { data: { backer_id: string } })[]
}

function world(): ChangeEvent[] {
  return ids().flatMap(id => [campaignEvent({ campaign_id: id, slug: `slug-${id}` }), ...pledgesOf(id)])
}

function keyEvent(status: 'ACTIVE' | 'REVOKED'): ChangeEvent {
  const version = status === 'ACTIVE' ? 1 : 2
  return apiKeyEvent({ key, account_id: 'a', secret_hash: hashSecret(pepper, secret), status, version })
}

function append(events: readonly ChangeEvent[]): void {
  log.append(events.map(newRecordOf))
}

/** Only a hang takes this long. Throws the failure of a projector that ended. */
async function drained(): Promise<void> {
  const isDrained = async () => {
    const { failure } = projector.service.health()
    if (failure !== undefined) throw new Error(failure)
    return projector.service.isDrained().catch(() => false)
  }
  await vi.waitUntil(isDrained, { timeout: drainMsMax, interval: 50 })
}

/** A query process with a cache of its own, which asks this server. */
async function startQuery(server: number) {
  const { app, close } = await startQueryService({
    ...{ tables: shards.as('pledgeview_query', server), databases: shards.databases, keyPepper: pepper },
    ...{ config, state: memoryState(config), metrics: createMetrics(), logger },
  })
  return { close, apiUrl: `${await app.listen({ host: '127.0.0.1', port: 0 })}/api/v1` }
}

async function ask(path: string, { apiUrl } = query): Promise<{ status: number; body: AnyBody }> {
  const response = await fetch(`${apiUrl}${path}`, { headers: { 'X-API-Key': key, 'X-API-Secret': secret } })
  return { status: response.status, body: (await response.json()) as AnyBody }
}
