/** What time does to keys: they end at their moment, and the sweeper writes it into the log, also after a kill. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { encodeState } from '../../../../contracts/events/codec.ts'
import type { ApiKeyState, StateEvent } from '../../../../contracts/events/event.ts'
import {
  createKeySweeper,
  defaultKeySweeperOptions,
  type KeySweeper,
  type KeySweeperOptions,
} from '../../../../services/portal/keys/key-sweeper.ts'
import { defaultPortalKeysOptions } from '../../../../services/portal/keys/portal-keys.ts'
import { memoryParts, type QueryService, startQueryService } from '../../../../services/query/service.ts'
import type { KeyRecord } from '../../../../services/shared/api-keys/api-keys.ts'
import { readConfig } from '../../../../services/shared/config.ts'
import { createMetrics } from '../../../../services/shared/ops/metrics.ts'
import { settingsFor } from '../../../support/clickhouse.ts'
import type { IssueChildArguments } from '../../../support/portal/issue-child.ts'
import {
  integrationOf,
  type KeyModel,
  openKeyModel,
  pepper,
  type TestPortal,
} from '../../../support/portal/key-model.ts'
import { apiKeyEvent } from '../../../support/sample-events.ts'

const script = new URL('../../../support/portal/issue-child.ts', import.meta.url).pathname
const hourMs = 3_600_000

let model: KeyModel
let portal: TestPortal
let account: string
let accounts = 0

beforeAll(async () => {
  model = await openKeyModel()
  portal = await model.openPortal()
})
afterAll(() => model.close())
beforeEach(() => {
  accounts++
  account = `account-${accounts}`
})

function sweeper(options: Partial<KeySweeperOptions> = {}): KeySweeper {
  return createKeySweeper({
    tables: model.tables,
    databases: model.databases,
    admin: portal.admin,
    options: { ...defaultKeySweeperOptions, graceMs: 0, forgottenMs: 0, ...options },
    onError: error => {
      throw error
    },
  })
}

/** Appends keys of the account, and resolves when they are in the tables. */
async function appended(...states: (Partial<ApiKeyState> & { key: string })[]): Promise<void> {
  const events = states.map(state => apiKeyEvent({ account_id: account, ...state }))
  await portal.admin.writer.append(
    events.map(event => ({
      topic: 'api-keys',
      key: Buffer.from(event.key),
      value: encodeState(event as StateEvent),
    })),
  )
  for (const { key } of states) await expect.poll(() => portal.admin.directory.find(key)).toHaveLength(1)
}

async function find(key: string): Promise<KeyRecord | undefined> {
  return (await portal.admin.directory.find(key))[0]
}

describe('the sweeper', () => {
  test('revokes what has ended, and later deletes what nobody has ever seen', async () => {
    const now = Date.now()
    await appended(
      { key: 'expired', expires_at: now - 1_000 },
      { key: 'unseen', confirm_by: now - 1_000 },
      { key: 'later', expires_at: now + hourMs, confirm_by: now + hourMs },
      { key: 'kept' },
    )
    expect(
      await Promise.all(['expired', 'unseen', 'later'].map(async key => (await find(key))?.status)),
    ).toEqual(['ended', 'ended', 'active'])
    expect(await sweeper({ graceMs: hourMs, forgottenMs: hourMs }).sweep()).toBe(0)
    // Two portals write the same.
    expect(await Promise.all([1, 2].map(() => sweeper({ forgottenMs: hourMs }).sweep()))).toEqual([2, 2])
    await expect.poll(async () => (await find('unseen'))?.status).toBe('revoked')
    await expect.poll(async () => (await find('expired'))?.status).toBe('revoked')
    expect((await find('unseen'))?.version).toBe('2')
    expect(await sweeper({ forgottenMs: hourMs }).sweep()).toBe(0)
    expect(await sweeper().sweep()).toBe(1)
    await expect.poll(() => find('unseen')).toBeUndefined()
    expect(await find('expired')).toMatchObject({ status: 'revoked', contact_email: 'owner@mirror.example' })
    expect(await find('later')).toMatchObject({ status: 'active' })
    expect(await find('kept')).toMatchObject({ status: 'active', version: '1' })
    expect(await sweeper().sweep()).toBe(0)
  })

  test('writes a bounded number of keys in a round, and each once', async () => {
    const keys = [1, 2, 3, 4, 5].map(n => `many-${n}`)
    await appended(...keys.map(key => ({ key, expires_at: Date.now() - 1_000 })))
    const bounded = sweeper({ rowsMax: 2 })
    const rounds: number[] = []
    await expect
      .poll(async () => {
        rounds.push(await bounded.sweep())
        return Promise.all(keys.map(async key => (await find(key))?.status))
      })
      .toEqual(keys.map(() => 'revoked'))
    expect(Math.max(...rounds)).toBe(2)
    expect(rounds.reduce((a, b) => a + b)).toBe(5)
  })

  test('gives a replaced key its end if its portal was killed while it confirmed the new one', async () => {
    const until = Date.now() + hourMs
    const replacing = { replaces: 'old', replaced_until: until }
    await appended(
      { key: 'old', version: 7 },
      { key: 'new', ...replacing },
      { key: 'foreign', account_id: 'another', ...replacing, replaced_until: until - 1 },
      { key: 'unconfirmed', confirm_by: until, ...replacing, replaced_until: until - 2 },
    )
    expect(await sweeper().sweep()).toBe(1)
    await expect.poll(async () => (await find('old'))?.expires_at_ms).toBe(until)
    expect(await find('old')).toMatchObject({ status: 'active', secret_hash: 'ab'.repeat(32) })
    expect(await sweeper().sweep()).toBe(0)
  })

  test('goes on after a round that failed, and ends when it is closed', async () => {
    const errors: unknown[] = []
    let rounds = 0
    const failing = createKeySweeper({
      tables: {
        rows: async () => {
          rounds++
          throw new Error('no answer')
        },
      },
      databases: model.databases,
      admin: portal.admin,
      options: { ...defaultKeySweeperOptions, pollMs: 1 },
      onError: error => errors.push(error),
    })
    failing.start()
    await expect.poll(() => errors.length).toBeGreaterThan(2)
    await failing.close()
    const ended = rounds
    await new Promise(resolve => setImmediate(resolve))
    expect(rounds).toBe(ended)
  })
})

describe('a portal that is killed between the click and the answer', () => {
  let query: QueryService
  const children: ChildProcess[] = []

  beforeAll(async () => {
    const config = readConfig({})
    query = await startQueryService({
      tables: model.tables,
      databases: model.databases,
      config,
      keyPepper: pepper,
      isOnlyProcess: true,
      parts: memoryParts(config),
      metrics: createMetrics(),
      logger: pino({ level: 'silent' }),
    })
  })
  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL')
    await query.close()
  })

  /** The key that a portal made before it was killed. */
  async function keyOfKilled(more: Pick<IssueChildArguments, 'account' | 'replaces'>): Promise<string> {
    const input: IssueChildArguments = {
      journal: model.journal,
      databases: model.databases,
      settings: settingsFor(model.clickHouse),
      // Its keys end after 10 s, so that the test does not wait for minutes.
      msAgo: defaultPortalKeysOptions.confirmMsMax - 10_000,
      ...more,
    }
    const child = fork(script, [JSON.stringify(input)], { execArgv: [] })
    children.push(child)
    const [key] = (await once(child, 'message')) as [string]
    child.kill('SIGKILL')
    const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
    expect(signal).toBe('SIGKILL')
    return key
  }

  test('leaves no key: it ends, its place is free, and a key that it should have replaced stays', async () => {
    const { key: old } = await portal.keys.issue(integrationOf(`${account}-replaces`))
    await portal.keys.confirm(`${account}-replaces`, old)
    const orphans = await Promise.all([
      keyOfKilled({ account }),
      keyOfKilled({ account: `${account}-replaces`, replaces: old }),
    ])
    // Nothing runs that could end them: only the time passes.
    for (const key of orphans) await expect.poll(() => query.keyRing.lookup(key)).toBeUndefined()
    expect(await portal.keys.ofAccount(account)).toEqual([])
    const running = sweeper({ pollMs: 50 })
    running.start()
    for (const key of orphans) await expect.poll(() => find(key)).toBeUndefined()
    await running.close()
    expect(await portal.keys.ofAccount(`${account}-replaces`)).toMatchObject([
      { key: old, status: 'active', expires_at_ms: null },
    ])
    expect(query.keyRing.lookup(old)).toBeDefined()
  })
})
