/** The operator's commands on the distributed form, as they are called: migrate, events, keys, status, rejects. */
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { formatEvent } from '../../contracts/events/ndjson.ts'
import { type Deployment, deploy } from '../support/deployment.ts'
import { kcat, kcatProgram } from '../support/kafka/kcat.ts'
import { needs, type Requirement } from '../support/requirements.ts'
import { campaignEvent, pledgeEvent } from '../support/sample-events.ts'
import { type LocalServices, localServices, startLocalServices } from '../support/stack.ts'

interface StatusOutput {
  projector: { members: number; lag: { committed: number; end: number }[] }
  fold: { pending_batches: number }
  tables: { public_campaigns: number; known_pledges: number; active_keys: number }
  rejects: { total: number }
}

const events = [
  campaignEvent({ campaign_id: 'c1', slug: 'lanterns', status: 'LIVE' }),
  ...[1, 2, 3].map(n => pledgeEvent({ campaign_id: 'c1', pledge_id: `p${n}`, backer_id: `b${n}` })),
]
const ndjson = `${events.map(formatEvent).join('\n')}\n`
const identity = ['--account', 'a', '--name', 'n', '--url', 'https://example.com', '--email', 'a@example.com']

describe('the commands on Kafka, ClickHouse and Redis', () => {
  let requirement: Requirement
  let services: LocalServices | undefined
  let deployment: Deployment

  async function json<T>(...args: string[]): Promise<T> {
    const { code, stdout, stderr } = await deployment.command([...args, '--json'])
    expect(code, stderr).toBe(0)
    return JSON.parse(stdout) as T
  }

  /** Awaits a status for which everything that is in the log is folded. */
  const drained = () =>
    vi.waitFor(
      async () => {
        const status = await json<StatusOutput>('status')
        const waiting = status.projector.lag.reduce((sum, { committed, end }) => sum + end - committed, 0)
        expect({ waiting, toFold: status.fold.pending_batches }).toEqual({ waiting: 0, toFold: 0 })
        return status
      },
      { timeout: 30_000, interval: 100 },
    )

  beforeAll(async () => {
    requirement = await localServices()
    if (!requirement.isMet) return
    services = await startLocalServices()
    deployment = await deploy(services.addresses)
  }, 300_000)

  beforeEach(context => needs(context, requirement))

  afterAll(async () => {
    await deployment?.stop()
    await services?.stop()
  })

  test('status tells of records that wait while no projector runs', async () => {
    const appended = await deployment.command(['events', 'append', '-', '--json'], ndjson)
    expect(appended.code, appended.stderr).toBe(0)
    expect(JSON.parse(appended.stdout)).toMatchObject({ appended: 4, lines: 4 })
    const { projector, tables } = await json<StatusOutput>('status')
    expect(projector.members).toBe(0)
    expect(projector.lag.reduce((sum, { committed, end }) => sum + end - committed, 0)).toBe(4)
    expect(tables.public_campaigns).toBe(0)
  })

  test('status tells who projects and what the tables hold', async () => {
    await deployment.startProjector()
    const { projector, tables, rejects } = await drained()
    expect(projector.members).toBe(1)
    expect(tables).toMatchObject({ public_campaigns: 1, known_pledges: 3 })
    expect(rejects.total).toBe(0)
    const { stdout } = await deployment.command(['status'])
    expect(stdout).toContain('campaigns     1 public of 1 known')
    expect(stdout).toContain('projectors    1')
  })

  test('rejects list shows a reject with its place, reason and bytes', async context => {
    needs(context, kcatProgram)
    const address = services?.addresses.kafka ?? ''
    await kcat(['-b', address, '-P', '-t', 'pledges', '-p', '2', '-k', 'c1/p9'], 'no event\n')
    await vi.waitFor(async () => expect((await json<StatusOutput>('status')).rejects.total).toBe(1), {
      timeout: 30_000,
      interval: 100,
    })
    const { total, rejects } = await json<{ total: number; rejects: Record<string, unknown>[] }>(
      'rejects',
      'list',
    )
    expect(total).toBe(1)
    expect(rejects).toEqual([
      expect.objectContaining({
        topic: 'pledges',
        partition: 2,
        key_base64: Buffer.from('c1/p9').toString('base64'),
        value_base64: Buffer.from('no event').toString('base64'),
        reason: expect.any(String),
      }),
    ])
  })

  test('a key that was issued opens the API of every query process, and revoked it opens none', async () => {
    const urls = (await Promise.all([deployment.startQuery(), deployment.startQuery()])).map(
      ({ apiUrl }) => apiUrl,
    )
    const { key, secret } = await json<{ key: string; secret: string }>('keys', 'issue', ...identity)
    const statuses = () =>
      Promise.all(
        urls.map(async url => {
          const response = await fetch(`${url}/projects`, {
            headers: { authorization: `Bearer ${key}:${secret}` },
          })
          await response.arrayBuffer()
          return response.status
        }),
      )
    const { keys } = await json<{ keys: { status: string }[] }>('keys', 'list', '--account', 'a')
    expect(keys.map(({ status }) => status)).toEqual(['active'])
    await vi.waitFor(async () => expect(await statuses()).toEqual([200, 200]), { timeout: 10_000 })
    await deployment.command(['keys', 'revoke', key])
    await vi.waitFor(async () => expect(await statuses()).toEqual([401, 401]), { timeout: 10_000 })
  })

  test.each([
    ['projector', 'PLEDGEVIEW_BACKER_KEY', 'f'.repeat(64)],
    ['projector', 'PLEDGEVIEW_PLATFORM_CURRENCY', 'EUR'],
    ['query', 'PLEDGEVIEW_KEY_PEPPER', 'f'.repeat(64)],
    ['query', 'PLEDGEVIEW_PLATFORM_CURRENCY', 'EUR'],
  ])(
    'a %s with another %s than the tables began with does not start, and names it',
    async (command, name, value) => {
      const { code, stderr } = await deployment.command([command], undefined, { [name]: value })
      expect(code).toBe(1)
      expect(stderr).toContain(`${name} is not what the tables in pledgeview began with`)
      expect(stderr).not.toContain(value.slice(0, 10).repeat(2))
    },
  )

  test('keys with another pepper are not issued', async () => {
    const { code, stderr } = await deployment.command(['keys', 'issue', ...identity], undefined, {
      PLEDGEVIEW_KEY_PEPPER: 'f'.repeat(64),
    })
    expect(code).toBe(1)
    expect(stderr).toContain('PLEDGEVIEW_KEY_PEPPER')
  })

  test('migrate again finds nothing to do', async () => {
    expect(await json('migrate')).toMatchObject({ applied: [], topics: [] })
  })

  test('migrate names what differs in a topic that is there', async () => {
    const other = { PLEDGEVIEW_KAFKA_PARTITIONS: '5' }
    const { code, stderr } = await deployment.command(['migrate'], undefined, other)
    expect(code).toBe(1)
    expect(stderr).toContain('the topic campaigns has partitions 6 instead of 5')
  })
})
