/**
 * The Kickstarter table is rebuilt on Kafka, a ClickHouse server and Redis, while events arrive and both query processes
 * answer all the time. The rebuild, a projector, or both are killed in every phase of the work. No reader notices.
 *
 * PLEDGEVIEW_TEST_SEED repeats which process is killed.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Client, createClient } from '../../contracts/api/client.ts'
import { openKafkaWriter } from '../../services/log/kafka/writer.ts'
import { projectListBodySchema } from '../../services/query/endpoints/projects.ts'
import { openTables } from '../../services/tables/clickhouse.ts'
import { defaultDatabases } from '../../services/tables/generations.ts'
import type { Tables } from '../../services/tables/port.ts'
import { settingsFor } from '../support/clickhouse.ts'
import { type Deployment, deploy } from '../support/deployment.ts'
import { createPlace, type Place } from '../support/faults/projectors.ts'
import { rebuildThroughKills } from '../support/faults/rebuild-kills.ts'
import { silent } from '../support/kafka/topics.ts'
import { appendKickstarter, issueCredentials, type Truth, untilDrained } from '../support/kickstarter.ts'
import { type Asked, describeAnswers, expectTrueViews } from '../support/kickstarter-answers.ts'
import { randomOf } from '../support/random.ts'
import { stampsOf } from '../support/rebuilds.ts'
import { kickstarterTable, needs, type Requirement } from '../support/requirements.ts'
import { campaignEvent, newRecordOf, pledgeEvent } from '../support/sample-events.ts'
import type { ServiceProcess } from '../support/service-process.ts'
import { type LocalServices, localServices, startLocalServices } from '../support/stack.ts'

const seed = process.env.PLEDGEVIEW_TEST_SEED ?? '20180101'
const moments = ['reading log', 'folding', 'catching up', 'verifying', 'promoting'] as const
const liveCampaigns = Array.from({ length: 5 }, (_, n) => `live-${n}`)
const trafficMs = 100
const pollMs = 3_000

let requirement: Requirement
let services: LocalServices
let deployment: Deployment
let places: readonly Place[]
let queries: readonly ServiceProcess[]
let credentials: Record<string, string>
let truth: Truth
let tables: Tables

beforeAll(async () => {
  requirement = kickstarterTable.isMet ? await localServices() : kickstarterTable
  if (!requirement.isMet) return
  services = await startLocalServices()
  deployment = await deploy(services.addresses, {
    PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '1000000',
    PLEDGEVIEW_CACHE_MS: '1000',
    PLEDGEVIEW_STATS_CACHE_MS: '1000',
    PLEDGEVIEW_LOG_LEVEL: 'warn',
  })
  places = [createPlace(deployment), createPlace(deployment)]
  await Promise.all(places.map(place => place.ready()))
  ;({ truth } = await appendKickstarter(deployment.command))
  credentials = await issueCredentials(deployment.command, 'a')
  await untilDrained(...(await Promise.all(places.map(place => place.ready()))))
  queries = [await deployment.startQuery(), await deployment.startQuery()]
  tables = openTables(settingsFor(services.clickHouse))
})

beforeEach(context => needs(context, requirement))

afterAll(async () => {
  await tables?.close()
  await Promise.all((places ?? []).map(place => place.stop()))
  await deployment?.stop()
  await services?.stop()
})

/** Sends pledges to its own campaigns until it is stopped. Then it deletes these campaigns. */
async function startTraffic() {
  const names = { brokers: [services.addresses.kafka], clientId: 'traffic', topicPrefix: '' }
  const writer = await openKafkaWriter({ ...names, retriesMax: 5 }, { logger: silent })
  let isOver = false
  let pledges = 0
  await writer.append(
    liveCampaigns.map(campaign_id => newRecordOf(campaignEvent({ campaign_id, category: 'Live' }))),
  )
  const running = (async () => {
    for (; !isOver; pledges++) {
      const campaign_id = liveCampaigns[pledges % liveCampaigns.length] ?? ''
      await writer.append([newRecordOf(pledgeEvent({ campaign_id, pledge_id: `p${pledges}` }))])
      await delay(trafficMs)
    }
  })()
  return {
    pledges: () => pledges,
    async stop() {
      isOver = true
      await running
      await writer.append(liveCampaigns.map(key => newRecordOf({ type: 'campaign', key, data: null })))
      await writer.close()
    },
  }
}

/** Asks a query process for pages and details of the table. Every answer has to be true. */
function startReader({ apiUrl }: ServiceProcess) {
  const faults: string[] = []
  const campaigns = Object.entries(truth.campaigns)
  let isOver = false
  let answers = 0
  async function ask(path: string): Promise<unknown> {
    const response = await fetch(`${apiUrl}${path}`, { headers: credentials })
    answers++
    if (response.status === 200) return response.json()
    faults.push(`${path}: ${response.status} ${await response.text()}`)
    return undefined
  }
  async function read(): Promise<void> {
    const offset = Math.floor(Math.random() * campaigns.length)
    const page = await ask(`/projects?limit=50&offset=${offset}`)
    const { data, pagination } = projectListBodySchema.parse(page)
    if (pagination.total < campaigns.length) faults.push(`a total of ${pagination.total}`)
    for (const { id, pledged_amount, backer_count } of data) {
      if (liveCampaigns.includes(id)) continue
      const expected = truth.campaigns[id]
      if (pledged_amount === expected?.pledged_amount && backer_count === expected.backer_count) continue
      faults.push(`${id} has ${pledged_amount} of ${backer_count} backers`)
    }
    const [, campaign] = campaigns[offset] ?? []
    await ask(`/projects/${encodeURIComponent(campaign?.slug ?? '')}`)
  }
  const running = (async () => {
    while (!isOver) {
      await read().catch(error => faults.push(String(error)))
      await delay(20)
    }
  })()
  return {
    faults,
    answers: () => answers,
    async stop() {
      isOver = true
      await running
    },
  }
}

/** Mirrors all campaigns with the sync client, and counts the changes that it gets after the first walk. */
function startPoller({ apiUrl }: ServiceProcess) {
  const { 'X-API-Key': key = '', 'X-API-Secret': secret = '' } = credentials
  const client: Client = createClient({ baseUrl: apiUrl, key, secret })
  const copies = new Map<string, object>()
  const fetched = new Map<string, number>()
  const over = new AbortController()
  const running = (async () => {
    const store = {
      watermark: null as string | null,
      load: () => store.watermark,
      save(at: string) {
        store.watermark = at
      },
    }
    for await (const change of client.mirror({
      intervalMs: pollMs,
      store,
      reportRepeats: true,
      signal: over.signal,
    })) {
      if (change.type !== 'upsert') continue
      const { id } = change.project
      if (store.watermark !== null) fetched.set(id, (fetched.get(id) ?? 0) + 1)
      copies.set(id, change.project)
    }
  })()
  running.catch(() => undefined)
  return {
    copies,
    fetched,
    async stop() {
      over.abort()
      await running.catch(() => undefined)
    },
  }
}

describe(`the Kickstarter table, rebuilt through kills, seed ${seed}`, () => {
  test('answers truly all the time, keeps every stamp, and makes pollers fetch nothing again', async () => {
    const before = await stampsOf({ tables, databases: defaultDatabases })
    const poller = startPoller(queries[0] as ServiceProcess)
    await expect.poll(() => poller.copies.size, { timeout: 120_000 }).toBe(before.length)
    // What was stamped within the commit horizon of the first walk is delivered once more.
    await delay(2 * pollMs)
    poller.fetched.clear()
    const traffic = await startTraffic()
    const readers = queries.map(startReader)
    const startedAt = performance.now()
    const deaths = await rebuildThroughKills({
      moments,
      random: randomOf(seed, 'rebuild'),
      places,
      tables,
      environment: deployment.environment,
    })
    const seconds = Math.round((performance.now() - startedAt) / 1_000)
    // After two more polls, everything that was stamped is fetched.
    await delay(4 * pollMs)
    await Promise.all(readers.map(reader => reader.stop()))
    await traffic.stop()
    await untilDrained(...(await Promise.all(places.map(place => place.ready()))))
    await poller.stop()
    const answers = readers.reduce((sum, reader) => sum + reader.answers(), 0)
    const fetched = [...poller.fetched.keys()].filter(id => !liveCampaigns.includes(id))
    console.log(
      `${deaths.length} kills in ${seconds} s (${deaths.join(', ')}); ${answers} answers, ${traffic.pledges()} pledges ` +
        `meanwhile; the poller fetched ${fetched.length} campaigns of the table and ${poller.fetched.size} in all`,
    )
    expect(readers.flatMap(reader => reader.faults)).toEqual([])
    expect(fetched).toEqual([])
    expect(await stampsOf({ tables, databases: defaultDatabases })).toEqual(before)
    const copied = Object.keys(truth.campaigns).filter(id => !poller.copies.has(id))
    expect(copied).toEqual([])
  })

  describe('afterwards', () => {
    const asked = (index: 0 | 1) => (): Asked => ({
      apiUrl: queries[index]?.apiUrl ?? '',
      credentials,
      truth,
    })
    describeAnswers('a query process', { sort: 'newest', isSampled: index => index % 10 === 0 }, asked(0))

    test("the data teams' views say what the table says", () => expectTrueViews(tables, truth))
  })
})
