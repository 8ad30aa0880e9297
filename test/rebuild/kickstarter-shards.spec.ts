/**
 * The main job on a cluster, with faults: the Kickstarter table as change events, with noise, through real Kafka, two shards, three
 * projectors, two query processes and a portal. While the events arrive, the server of a shard, a projector, and the projector
 * that leads the fold are killed with -9. Then the shards are rebuilt, and last the query processes turn over to three shards that
 * are filled by replay while the projectors of the two stand still. All the time a consumer mirrors the campaigns by the documented loop.
 *
 * By default only the first campaigns of the table. PLEDGEVIEW_TEST_CAMPAIGNS=all takes the whole table, or a number its first rows.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Deployment, deploy } from '../support/deployment.ts'
import { whenFolded } from '../support/deployment-status.ts'
import { generatedKickstarter, issueCredentials, type Truth, untilAccepted } from '../support/kickstarter.ts'
import {
  describeAnswers,
  expectTrueMirror,
  expectTrueViews,
  watchAnswers,
} from '../support/kickstarter-answers.ts'
import { type Amendments, amendmentsOf, slicesOf } from '../support/kickstarter-parts.ts'
import { type PollingMirror, startPollingMirror } from '../support/polling-mirror.ts'
import { createBrowser } from '../support/portal/browser.ts'
import { type MailServer, startMailServer } from '../support/portal/mail-server.ts'
import { createKeyAt, type NewPerson, signUp, startReadyPortal } from '../support/portal/new-person.ts'
import { resultOf } from '../support/rebuild-service.ts'
import { stampsOf } from '../support/rebuilds.ts'
import { kickstarterTable, needs, type Requirement } from '../support/requirements.ts'
import type { ServiceProcess } from '../support/service-process.ts'
import { killWhileEventsArrive, untilOneLeads } from '../support/shard-kills.ts'
import { type ShardServers, startShards } from '../support/shards.ts'
import { type LocalServices, localServices, startLocalServices } from '../support/stack.ts'

// The rebuild needs the machine, too.
const betweenChangesMs = 2_000

const asked = process.env.PLEDGEVIEW_TEST_CAMPAIGNS ?? '250'
const isWhole = asked === 'all'
const campaigns = isWhole ? undefined : Number(asked)
const least = isWhole ? undefined : { sampled: 1, hidden: 1 }
const every = isWhole ? 40 : 8
// Only a hang takes this long, also on a busy machine.
const stepMsMax = 900_000
const soon = { timeout: stepMsMax, interval: 1_000 }
vi.setConfig({ testTimeout: 480_000 })

const settings = {
  PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '1000000',
  // What is shown is computed, not remembered from before a fault. A walk of the whole table, a hundred pages, must fit into it.
  PLEDGEVIEW_CACHE_MS: isWhole ? '20000' : '1000',
  PLEDGEVIEW_STATS_CACHE_MS: '1000',
  // Nothing stays away for good. A busy machine may take longer than a minute to start a server again.
  PLEDGEVIEW_RETRY_MS_MAX: '600000',
  // The group soon notices a killed projector.
  PLEDGEVIEW_KAFKA_SESSION_MS: '6000',
  // So many batches that each kill falls between some, also with a part of the table.
  ...(!isWhole && { PLEDGEVIEW_BATCH_RECORDS_MAX: '500' }),
}
// On a cluster every shard checks the rights of the person who asks.
const asUser = (user: string) => ({ PLEDGEVIEW_CLICKHOUSE_USER: user, PLEDGEVIEW_CLICKHOUSE_PASSWORD: '' })
const portalSettings = () => ({
  ...asUser('pledgeview_portal'),
  PLEDGEVIEW_API_URL: queries[0]?.apiUrl ?? '',
  PLEDGEVIEW_PORTAL_KEY: portalKey,
  PLEDGEVIEW_SMTP_URL: mailServer.url,
})
const portalKey = randomBytes(32).toString('hex')

let requirement: Requirement
let services: LocalServices
let shards: ShardServers
let deployment: Deployment
let mailServer: MailServer
let projectors: ServiceProcess[]
let queries: ServiceProcess[]
let person: NewPerson
let credentials: Record<string, string>
let truth: Truth
let amendments: Amendments
let mirror: PollingMirror
let eventsFile: string

const urlsOf = (processes: readonly ServiceProcess[]) => processes.map(({ apiUrl }) => apiUrl)
const publicCount = () => Object.keys(truth.campaigns).length

function startQueries(on: Deployment): Promise<ServiceProcess[]> {
  const asReader = asUser('pledgeview_query')
  return Promise.all([on.startQuery(asReader), on.startQuery(asReader)])
}

function startProjectors(on: Deployment): Promise<ServiceProcess[]> {
  return Promise.all(Array.from({ length: 3 }, () => on.startProjector()))
}

async function append(events: string): Promise<void> {
  const { code, stderr } = await deployment.command(['events', 'append', '-'], events)
  expect(code, stderr).toBe(0)
}

/** The answers of both query processes, each asked for what the other was not asked for. */
function describeBoth(): void {
  const sorts = ['newest', 'most_backed'] as const
  for (const [index, sort] of sorts.entries()) {
    const isSampled = (campaign: number) => campaign % every === (index * every) / 2
    describeAnswers(`query process ${index + 1}`, { sort, isSampled, ...(least && { least }) }, () => ({
      apiUrl: queries[index]?.apiUrl ?? '',
      credentials,
      truth,
    }))
  }
}

beforeAll(async () => {
  requirement = kickstarterTable.isMet ? await localServices() : kickstarterTable
  if (!requirement.isMet) return
  ;({ eventsFile, truth } = await generatedKickstarter(campaigns))
  const ids = Object.keys(truth.campaigns)
  amendments = await amendmentsOf(
    eventsFile,
    ids.filter((_, index) => index % Math.ceil(ids.length / 40) === 0),
  )
  mailServer = await startMailServer()
  services = await startLocalServices({ shards: 2 })
  shards = services.shards as ShardServers
  deployment = await deploy(services.addresses, settings)
  ;[projectors, queries] = await Promise.all([startProjectors(deployment), startQueries(deployment)])
  await untilOneLeads(projectors)
  credentials = await issueCredentials(deployment.command, 'a')
  for (const url of urlsOf(queries)) await untilAccepted(url, credentials)
  mirror = startPollingMirror(urlsOf(queries), credentials)
}, stepMsMax)

beforeEach(context => needs(context, requirement))

afterAll(async () => {
  await mirror?.stop()
  await deployment?.stop()
  await services?.stop()
  await mailServer?.close()
}, stepMsMax)

describe('on two shards, after kill -9 of a shard, of a projector and of the leader', () => {
  beforeAll(async () => {
    if (!requirement.isMet) return
    const begunAt = performance.now()
    const figures = await killWhileEventsArrive({
      deployment,
      shards,
      projectors,
      slices: slicesOf(eventsFile, 4),
      refused: () => mirror.refused(),
    })
    const drainedAt = performance.now()
    const { tables } = await whenFolded(deployment, soon)
    const seconds = (from: number) => Math.round((performance.now() - from) / 1_000)
    console.log(
      `${figures}; ${tables.public_campaigns} campaigns, ${tables.known_pledges} pledges; ` +
        `folded ${seconds(begunAt)} s after the first, ${seconds(drainedAt)} s after the last event; ` +
        `${mirror.polls()} polls, ${mirror.refused()} requests refused`,
    )
  }, stepMsMax)

  describeBoth()

  test("the data teams' views say what the table says", () => expectTrueViews(shards.tables, truth))

  test('the mirror has what a new walk finds', () => expectTrueMirror(mirror, truth))

  test('a person signs in at the portal, and a key that is made there opens both query processes', async () => {
    person = await signUp(await startReadyPortal(deployment, portalSettings()), 'ada@example.com', mailServer)
    await expectKeyOpens(await createKeyAt(person.browser))
  })
})

describe('rebuilt, with the projectors at work and the mirror polling', () => {
  let faults: string[]
  let walks: number

  beforeAll(async () => {
    if (!requirement.isMet) return
    let isOver = false
    const watch = watchAnswers(urlsOf(queries).map(apiUrl => ({ apiUrl, credentials, truth })))
    const changing = (async () => {
      for (; !isOver; await delay(betweenChangesMs)) await append(amendments.next())
    })()
    const done = await deployment.command(['rebuild', '--json']).finally(async () => {
      isOver = true
      ;({ walks, faults } = await watch.stop())
      await changing
    })
    expect(done.code, done.stderr).toBe(0)
    const { outcome, differences, seconds, records } = resultOf(done)
    expect({ outcome, differences }).toMatchObject({
      outcome: 'rebuilt',
      differences: { added: 0, removed: 0, different: 0 },
    })
    // What changes while it compares is not compared.
    expect(differences?.same).toBeGreaterThanOrEqual(publicCount() - amendments.ids.length)
    console.log(
      `rebuilt ${records} records, ${differences?.same} campaigns compared and the same, ` +
        `seconds: ${JSON.stringify(seconds)}; ${walks} walks of everything meanwhile`,
    )
    await whenFolded(deployment, soon)
  }, stepMsMax)

  test('no walk and no statistics missed a campaign or showed a wrong one at any time', () => {
    expect(walks).toBeGreaterThan(4)
    expect(faults.slice(0, 5)).toEqual([])
  })

  describeBoth()

  test("the data teams' views say what the table says", () => expectTrueViews(shards.tables, truth))

  test('the mirror has what a new walk finds', () => expectTrueMirror(mirror, truth))
})

describe('on three shards that were filled by replay while the projectors of the two stood still', () => {
  let three: ShardServers
  let wider: Deployment
  /** With which the mirror goes on from the two shards. */
  let watermark: string

  beforeAll(async () => {
    if (!requirement.isMet) return
    three = await startShards(3)
    const { PLEDGEVIEW_KEY_PEPPER, PLEDGEVIEW_BACKER_KEY } = deployment.environment
    wider = await deploy(
      {
        ...services.addresses,
        clickHouse: three.servers[0] as ShardServers['servers'][0],
        cluster: three.environment,
      },
      {
        ...settings,
        PLEDGEVIEW_KEY_PEPPER: PLEDGEVIEW_KEY_PEPPER ?? '',
        PLEDGEVIEW_BACKER_KEY: PLEDGEVIEW_BACKER_KEY ?? '',
      },
    )
    await Promise.all(projectors.map(projector => projector.stop()))
    const begunAt = performance.now()
    await startProjectors(wider)
    await whenFolded(wider, soon)
    const filledMs = performance.now() - begunAt
    const newQueries = await startQueries(wider)
    for (const url of urlsOf(newQueries)) await untilAccepted(url, credentials)
    await mirror.untilIdle()
    watermark = mirror.since() ?? ''
    mirror.forgetFetched()
    mirror.pointTo(urlsOf(newQueries))
    await Promise.all(queries.map(query => query.stop()))
    queries = newQueries
    console.log(`three shards filled in ${Math.round(filledMs / 1_000)} s`)
  }, stepMsMax)

  afterAll(async () => {
    await wider?.stop()
    await three?.stop()
  }, stepMsMax)

  test('every campaign has a stamp that no consumer has passed', async () => {
    const stamps = await stampsOf(three)
    expect(stamps).toHaveLength(publicCount())
    const passed = stamps.filter(({ at }) => Date.parse(`${at.replace(' ', 'T')}Z`) < Date.parse(watermark))
    expect(passed).toEqual([])
  })

  test('the mirror goes on with its watermark, fetches each campaign, and then none again', async () => {
    await mirror.untilIdle()
    expect(mirror.fetched()).toEqual(Object.keys(truth.campaigns).sort())
    mirror.forgetFetched()
    const polls = mirror.polls()
    await vi.waitUntil(() => mirror.polls() > polls + 3, soon)
    expect(mirror.fetched()).toEqual([])
    await expectTrueMirror(mirror, truth)
  })

  describeBoth()

  test("the data teams' views say what the table says", () => expectTrueViews(three.tables, truth))

  test('what changes from now on reaches the mirror, and nothing else does', async () => {
    await append(amendments.next())
    await whenFolded(wider, soon)
    await expectTrueMirror(mirror, truth)
    expect(mirror.fetched()).toEqual([...amendments.ids].sort())
  })

  test('the portal goes on with the new tables', async () => {
    // The session is in Redis, and the account in Kafka.
    const browser = createBrowser(await startReadyPortal(wider, portalSettings()), person.browser.cookies)
    await expect.poll(async () => (await browser.get('/account')).text, soon).toContain(person.email)
    await expectKeyOpens(await createKeyAt(browser))
  })
})

/** Both query processes answer to this key, with the whole table. */
async function expectKeyOpens(headers: Record<string, string>): Promise<void> {
  for (const apiUrl of urlsOf(queries)) {
    await untilAccepted(apiUrl, headers)
    const response = await fetch(`${apiUrl}/stats`, { headers })
    expect(await response.json()).toMatchObject({ data: { projects_total: publicCount() } })
  }
}
