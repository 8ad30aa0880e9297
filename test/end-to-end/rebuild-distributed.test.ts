/** `pledgeview rebuild` on Kafka and a ClickHouse server, as a process beside a projector and a query service. */
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { formatEvent } from '../../contracts/events/ndjson.ts'
import { openKafkaWriter } from '../../services/log/kafka/writer.ts'
import { type Deployment, deploy } from '../support/deployment.ts'
import { silent } from '../support/kafka/topics.ts'
import { linesOf, resultOf, smallPlatform } from '../support/rebuild-service.ts'
import { needs, type Requirement } from '../support/requirements.ts'
import { noEvent } from '../support/sample-events.ts'
import { type LocalServices, localServices, startLocalServices } from '../support/stack.ts'

const ndjson = smallPlatform()
  .map(event => `${formatEvent(event)}\n`)
  .join('')

const badRecords = 19
// Each batch costs several statements and a commit, so these make a rebuild last for seconds.
const slowEnough = { PLEDGEVIEW_BATCH_RECORDS_MAX: '20' }

describe('a rebuild on Kafka and ClickHouse', () => {
  let requirement: Requirement
  let services: LocalServices | undefined
  let deployment: Deployment

  const rebuild = (args: string[], settings: Readonly<Record<string, string>> = {}) =>
    deployment.command(['rebuild', ...args], undefined, settings)

  async function status(): Promise<{ rebuild: { id: string; outcome: string; is_alive: boolean } | null }> {
    return JSON.parse((await rebuild(['status', '--json'])).stdout)
  }

  /** What `rejects list` says of all rejects. */
  async function rejects(): Promise<{ total: number }> {
    return JSON.parse((await deployment.command(['rejects', 'list', '--json', '--limit', '100'])).stdout)
  }

  beforeAll(async () => {
    requirement = await localServices()
    if (!requirement.isMet) return
    services = await startLocalServices()
    deployment = await deploy(services.addresses)
    expect((await deployment.command(['events', 'append', '-'], ndjson)).code).toBe(0)
    await appendBad(services.addresses.kafka)
    await deployment.startProjector()
    await vi.waitFor(
      async () => {
        const { stdout } = await deployment.command(['status', '--json'])
        expect(JSON.parse(stdout)).toMatchObject({
          tables: { public_campaigns: 40 },
          fold: { pending_batches: 0 },
          rejects: { total: badRecords },
        })
      },
      // Each look is a process. Only a hang takes this long, also on a busy machine.
      { timeout: 120_000, interval: 200 },
    )
  }, 480_000)

  beforeEach(context => needs(context, requirement))

  afterAll(async () => {
    await deployment?.stop()
    await services?.stop()
  })

  test('there was none yet, and status says so', async () => {
    expect(await rebuild(['status'])).toMatchObject({ code: 0, stdout: 'There has never been a rebuild.\n' })
  })

  test('is refused with another backer key than the tables began with, on a server without shards, and before migrate', async () => {
    const other = await rebuild([], { PLEDGEVIEW_BACKER_KEY: 'f'.repeat(64) })
    expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('PLEDGEVIEW_BACKER_KEY differs') })
    const cluster = await rebuild([], {
      PLEDGEVIEW_CLICKHOUSE_CLUSTER: 'c',
      PLEDGEVIEW_CLICKHOUSE_SHARD_URLS: services?.addresses.clickHouse.url ?? '',
    })
    expect(cluster).toMatchObject({ code: 1, stderr: expect.stringContaining('shard') })
    const bare = await rebuild(['status'], { PLEDGEVIEW_DATABASE: 'bare' })
    expect(bare).toMatchObject({ code: 1, stderr: expect.stringContaining('pledgeview migrate') })
    expect(await status()).toEqual({ rebuild: null })
  })

  test('comes out the same, can be rolled back, and its tables can be dropped; no reject is stored again', async () => {
    const before = await rejects()
    const done = await rebuild(['--json'])
    expect(done.code, done.stderr).toBe(0)
    expect(linesOf(done)[0]).toMatchObject({ type: 'progress' })
    const differences = { same: 40, added: 0, removed: 0, different: 0 }
    expect(resultOf(done)).toMatchObject({ outcome: 'rebuilt', differences })
    const back = await rebuild(['rollback', '--json'])
    expect(back.code, back.stderr).toBe(0)
    expect(resultOf(back)).toMatchObject({ outcome: 'rebuilt', differences })
    // Forming a consumer group takes seconds. Meanwhile it says what it waits for.
    const preparing = linesOf(back).filter(({ phase }) => phase === 'preparing')
    expect(preparing.at(-1)).toMatchObject({ waits_for: expect.stringContaining('Kafka') })
    expect(await rebuild(['drop'])).toMatchObject({
      code: 0,
      stdout: 'The tables that the rollback replaced are dropped.\n',
    })
    // Their count, and their times.
    expect(await rejects()).toEqual(before)
  })

  test('of two at once, one is refused and the other ends well; a dry run stores no reject', async () => {
    const before = await rejects()
    const dryRun = () => rebuild(['--dry-run', '--json'], slowEnough)
    const both = await Promise.all([dryRun(), dryRun()])
    const [done, refused] = both.toSorted((a, b) => (a.code ?? 9) - (b.code ?? 9))
    expect(done?.code, done?.stderr).toBe(0)
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/rebuild (is running|began)/) })
    expect(await status()).toMatchObject({ rebuild: { outcome: 'compared', is_alive: false } })
    expect(await rejects()).toEqual(before)
  })
})

/** Appends records that are not events. */
async function appendBad(broker: string): Promise<void> {
  const writer = await openKafkaWriter(
    { brokers: [broker], clientId: 'test', topicPrefix: '' },
    { logger: silent },
  )
  await writer.append(Array.from({ length: badRecords }, () => noEvent))
  await writer.close()
}
