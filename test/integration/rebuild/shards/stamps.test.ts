/** From one server to two shards and back: a mirroring poller fetches only what has changed. */
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { memoryParts, type QueryService, startQueryService } from '../../../../services/query/service.ts'
import {
  releaseStamps,
  StampsRefused,
  type TakenStamps,
  takeStamps,
} from '../../../../services/rebuild/take-stamps.ts'
import { takeStampsDistributed } from '../../../../services/rebuild/take-stamps-distributed.ts'
import { hashSecret } from '../../../../services/shared/api-keys/credentials.ts'
import { readConfig } from '../../../../services/shared/config.ts'
import { createMetrics } from '../../../../services/shared/ops/metrics.ts'
import { sleep } from '../../../../services/shared/sleep.ts'
import { holdTablesIdentity } from '../../../../services/shared/tables/identity.ts'
import type { Tables } from '../../../../services/shared/tables/port.ts'
import { type Place, poll } from '../../../simulation/documented-loop.ts'
import { type ModelTables, openModelTables } from '../../../support/model-tables.ts'
import { pepper } from '../../../support/query-app.ts'
import {
  openRebuildableModel,
  platformHistory,
  type RebuildableModel,
  stampsOf,
} from '../../../support/rebuilds.ts'
import { apiKeyEvent, campaignEvent, pledgeEvent } from '../../../support/sample-events.ts'
import { openRebuildableShards } from '../../../support/shard-rebuilds.ts'
import { type ShardServers, startShards } from '../../../support/shards.ts'

// A busy machine is no failure.
vi.setConfig({ testTimeout: 480_000 })

const key = 'pv_live_0123456789abcdefghijklmnop'
const secret = 'a secret of the tests'
const config = readConfig({
  PLEDGEVIEW_COMMIT_HORIZON_MS: '5000',
  PLEDGEVIEW_PLATFORM_CURRENCY: 'USD',
  PLEDGEVIEW_CACHE_MS: '1000',
  PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '100000',
})

let model: ModelTables
let servers: ShardServers
let single: RebuildableModel
let shards: RebuildableModel

beforeAll(async () => {
  model = await openModelTables()
  servers = await startShards(2)
  single = await openRebuildableModel(model)
  shards = await openRebuildableShards(servers, { journal: single.journal })
  for (const { tables, databases } of [single, shards]) {
    await holdTablesIdentity(tables, databases, {
      PLEDGEVIEW_KEY_PEPPER: pepper,
      PLEDGEVIEW_PLATFORM_CURRENCY: 'USD',
    })
  }
})
afterAll(async () => {
  await shards?.close()
  await single?.close()
  await servers?.stop()
  await model?.dispose()
})

let runs = 0
function take(into: RebuildableModel, from: RebuildableModel): Promise<TakenStamps> {
  const { tables, databases, cluster } = into
  return takeStamps({
    tables,
    databases,
    cluster,
    from: from.cluster?.shards ?? [from],
    config,
    acceptsLoss: false,
    run: `stamps-${++runs}`,
    monotonicMs: () => performance.now(),
    sleep,
    random: Math.random,
  })
}

/** Walks as the documented loop does, over query processes of these tables. Returns the ids of what it fetched. */
async function walk(place: Place, of: RebuildableModel, tables: Tables): Promise<string[]> {
  const query: QueryService = await startQueryService({
    tables,
    databases: of.databases,
    config,
    keyPepper: pepper,
    parts: memoryParts(config),
    isOnlyProcess: false,
    metrics: createMetrics(),
    logger: pino({ level: 'silent' }),
  })
  try {
    const url = await query.app.listen({ host: '127.0.0.1', port: 0 })
    const fetched = new Map<string, unknown>()
    await poll(
      {
        ...place,
        copy: { set: (id: string, project: unknown) => fetched.set(id, project) },
      } as unknown as Place,
      {
        pageSize: 100,
        get: async path => {
          const headers = { 'X-API-Key': key, 'X-API-Secret': secret }
          const response = await fetch(`${url}/api/v1${path}`, { headers })
          if (response.ok && path.includes('offset=0')) place.since = response.headers.get('x-data-as-of')
          return response
        },
        wait: () => delay(200),
      },
    )
    for (const [id, project] of fetched) place.copy.set(id, project as never)
    return [...fetched.keys()].sort()
  } finally {
    await query.close()
  }
}

test('it names the other server that cannot be used, and wants every shard of the other tables', async () => {
  const [first] = servers.servers
  const own = {
    PLEDGEVIEW_CLICKHOUSE_URL: first?.url,
    PLEDGEVIEW_CLICKHOUSE_USER: first?.user,
    PLEDGEVIEW_CLICKHOUSE_PASSWORD: first?.password,
    ...servers.environment,
  }
  const refused = (...fromUrls: string[]) =>
    takeStampsDistributed(readConfig(own), { fromUrls, acceptsLoss: false }).then(
      () => 'done',
      (error: Error) => error.message,
    )
  const [one = '', two = ''] = servers.servers.map(({ url }) => url)
  const host = new URL(model.clickHouse.url).host
  expect(await refused(model.clickHouse.url)).toMatch(
    new RegExp(`^the other tables at ${host}: .*not up to date`),
  )
  expect(await refused(one)).toMatch('the cluster main has 2 shards, and 1 URLs are given')
  expect(await refused(one, two)).toMatch('leads to these tables')
  expect(await refused('http://127.0.0.1:1')).toMatch('the other tables at 127.0.0.1:1: ')
})

test('more shards: the poller goes on with its watermark, and back again, and fetches only what has changed', async () => {
  const more = (campaign_id: string, pledge_id: string) => pledgeEvent({ campaign_id, pledge_id })
  const place: Place = { copy: new Map(), since: null }
  await single.append([
    ...platformHistory(40),
    apiKeyEvent({ key, account_id: 'reader', secret_hash: hashSecret(pepper, secret) }),
  ])
  await Promise.all([single.settled(), shards.settled()])
  expect((await walk(place, single, single.tables)).length).toBe((await stampsOf(single)).length)
  // Until the watermark has passed all stamps.
  await vi.waitFor(async () => expect(await walk(place, single, single.tables)).toEqual([]), {
    timeout: 60_000,
  })
  // Filled at another time, the shards have other stamps.
  expect(await stampsOf(shards)).not.toEqual(await stampsOf(single))

  await expect(take(shards, single)).rejects.toBeInstanceOf(StampsRefused)
  await single.append([more('c1', 'seen by both')])
  await Promise.all([single.settled(), shards.settled()])
  await single.stopProjector()
  await single.append([more('c2', 'seen by the shards alone'), campaignEvent({ campaign_id: 'c100' })])
  await shards.settled()
  expect(await take(shards, single)).toMatchObject({ different: 2 })
  // Repeated.
  expect(await take(shards, single)).toMatchObject({ different: 2 })
  expect(await walk(place, shards, servers.as('pledgeview_query'))).toEqual(['c1', 'c100', 'c2'])
  await vi.waitFor(
    async () => expect(await walk(place, shards, servers.as('pledgeview_query'))).toEqual([]),
    { timeout: 60_000 },
  )

  // The way back.
  await single.append([more('c3', 'seen by both again')])
  await single.startProjector()
  expect(await releaseStamps(single, 'release')).toBe(true)
  await Promise.all([single.settled(), shards.settled()])
  await shards.stopProjector()
  expect(await take(single, shards)).toMatchObject({ different: 0 })
  expect(await stampsOf(single)).toEqual(await stampsOf(shards))
  expect(await walk(place, single, single.tables)).toEqual(['c3'])
})
