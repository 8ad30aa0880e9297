/** Revocations: a revoked key is refused soon after its event, whatever the fold is doing. */
import { pino } from 'pino'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { ApiKeyState, ChangeEvent } from '../../../../contracts/events/event.ts'
import { tablesStatus } from '../../../../services/projector/status.ts'
import {
  createKeyRing,
  defaultKeyRingOptions,
  type KeyRing,
} from '../../../../services/query/auth/key-ring.ts'
import { startQueryService } from '../../../../services/query/service.ts'
import { memoryState } from '../../../../services/query/shared-state.ts'
import { sleep } from '../../../../services/runtime/async/sleep.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import { createMetrics } from '../../../../services/runtime/ops/metrics.ts'
import { defaultDatabases } from '../../../../services/tables/generation-log.ts'
import type { Databases, Statement, Tables } from '../../../../services/tables/port.ts'
import { apiKeyEvent, campaignEvent } from '../../../support/events/sample-events.ts'
import { openRebuildableModel } from '../../../support/generations/rebuilds.ts'
import { activeKeys } from '../../../support/projector/fold-records.ts'
import { createIngest, createTestFoldWorker } from '../../../support/projector/model-tables.ts'
import { useModelTables } from '../../../support/projector/use-model-tables.ts'
import { testClock } from '../../../support/query/app.ts'

const soon = { timeout: 20_000, interval: 50 }
const config = readConfig({})
const active = (key: string) => apiKeyEvent({ key, account_id: `account of ${key}` })
const revoked = (key: string) =>
  apiKeyEvent({ key, account_id: `account of ${key}`, version: 2, status: 'REVOKED' })

describe('a revoked key', () => {
  const model = useModelTables()

  /** Tables of these events, which a leader has folded. */
  async function projected(...events: ChangeEvent[]) {
    const databases = await model.freshDatabases()
    const ingest = createIngest(model.tables, databases)
    const { foldWorker } = createTestFoldWorker(model.tables, databases)
    await foldWorker.acquireLeadership()
    await ingest(events)
    await foldWorker.fold()
    return { databases, ingest, fold: () => foldWorker.fold() }
  }

  async function startQuery(databases: Databases, tables: Tables = model.tables) {
    const service = await startQueryService({
      tables,
      databases,
      config,
      keyPepper: 'pepper',
      state: memoryState(config),
      metrics: createMetrics(),
      logger: pino({ level: 'silent' }),
    })
    onTestFinished(() => service.close())
    // Its first reads have a time limit, which a busy machine may reach. It reads again.
    await expect.poll(() => service.keyRing.isFresh()).toBe(true)
    return service.keyRing
  }

  test('is refused although nothing folds: the leader is dead, or has a backlog', async () => {
    const { databases, ingest } = await projected(active('k'), active('kept'))
    const keyRing = await startQuery(databases)
    expect(keyRing.lookup('k')).toBeDefined()
    await ingest([revoked('k')])
    await vi.waitFor(() => expect(keyRing.lookup('k')).toBeUndefined(), soon)
    expect(keyRing.lookup('kept')).toBeDefined()
  })

  test('is looked for so often that a look may take its whole time', async () => {
    // From an answer to the next look. The machine makes some longer, and none shorter.
    const pauses: number[] = []
    let answeredAt: number | undefined
    const tables: Tables = {
      ...model.tables,
      async rows(statement, options) {
        if (!statement.query.includes('revoked_keys')) return model.tables.rows(statement, options)
        if (answeredAt !== undefined) pauses.push(performance.now() - answeredAt)
        return model.tables.rows<never>(statement, options).finally(() => {
          answeredAt = performance.now()
        })
      },
    }
    await startQuery(await model.freshDatabases(), tables)
    await expect.poll(() => pauses.length).toBeGreaterThan(2)
    expect(Math.min(...pauses) + defaultKeyRingOptions.pollMsMax).toBeLessThan(2_000)
  })

  interface KeysSeen {
    active: number
    revoked: string[]
    newest?: string
  }

  /**
   * A ring over tables that have the key `k`, and later rows by which it is revoked. `loaded`, `changed`: what a statement waits for that
   * loads keys, and one that reads such rows. `loaded` may say that the key is not there any more, and `changed` that it is still current.
   */
  function openRing(
    look: () => KeysSeen | Promise<KeysSeen>,
    loaded: () => Promise<unknown> = async () => {},
    changed: () => Promise<unknown> = async () => {},
  ) {
    const clock = testClock()
    async function rows({ query }: Statement) {
      if (query.includes('revoked_keys')) return [{ newest: '1', ...(await look()) }] as never[]
      if (query.includes('is_current')) {
        const isCurrent = (await changed()) === true
        return [{ api_key: 'k', secret_hash: 'hash', scopes: [], is_current: isCurrent }] as never[]
      }
      const isThere = (await loaded()) !== false
      return (isThere ? [{ api_key: 'k', secret_hash: 'hash', scopes: [] }] : []) as never[]
    }
    const context = {
      tables: { rows },
      databases: defaultDatabases,
      monotonicMs: clock.now,
      sleep,
      onError: () => {},
    }
    return { ring: createKeyRing({ ...defaultKeyRingOptions, pollMs: 1 }, context), clock }
  }

  /** Whether the ring has the key `k` at any time during its next looks. */
  async function isSeen(ring: KeyRing, looks: () => number): Promise<boolean> {
    const looked = looks()
    let seen = false
    while (looks() < looked + 5) {
      seen ||= ring.lookup('k') !== undefined
      await sleep(0)
    }
    return seen
  }

  /** A ring that has the key `k`, and is loading all keys. The load waits for `loading`. */
  async function openLoadingRing(changed?: () => Promise<void>) {
    const state = { active: 1, revoked: [] as string[], newest: '1', pause: Promise.resolve() }
    let loads = 0
    const loading = Promise.withResolvers<void>()
    const { ring } = openRing(
      () => state.pause.then(() => state),
      async () => {
        if (++loads > 1) await loading.promise
      },
      changed,
    )
    await ring.start()
    expect(ring.lookup('k')).toBeDefined()
    // Another number of keys than the ring has.
    state.active = 2
    await vi.waitFor(() => expect(loads).toBe(2), soon)
    return { ring, state, loads: () => loads, loading }
  }

  test('is refused while all keys are being loaded, also if it was folded between two looks', async () => {
    const { ring, state, loading } = await openLoadingRing()
    Object.assign(state, { active: 1, newest: '2' })
    await vi.waitFor(() => expect(ring.lookup('k')).toBeUndefined(), soon)
    // The load has read it before. What it read comes while the next look takes its time.
    const pause = Promise.withResolvers<void>()
    state.pause = pause.promise
    loading.resolve()
    await expect(
      vi.waitFor(() => expect(ring.lookup('k')).toBeDefined(), { timeout: 300, interval: 5 }),
    ).rejects.toThrow()
    pause.resolve()
    await ring.close()
  })

  test('is refused while all keys are loaded and changes before it are read, and afterwards, though the load has it', async () => {
    const changing = Promise.withResolvers<void>()
    let changes = 0
    const { ring, state, loads, loading } = await openLoadingRing(() => {
      changes++
      return changing.promise
    })
    state.newest = '2'
    await vi.waitFor(() => expect(changes).toBe(1), soon)
    state.revoked = ['k']
    await vi.waitFor(() => expect(ring.lookup('k')).toBeUndefined(), soon)
    changing.resolve()
    loading.resolve()
    await vi.waitFor(() => expect(loads()).toBeGreaterThan(2), soon)
    expect(ring.lookup('k')).toBeUndefined()
    await ring.close()
  })

  test('is not put back by an answer about earlier changes that comes late', async () => {
    const state = { active: 1, revoked: [] as string[], newest: '1' }
    const answers = [Promise.withResolvers<boolean>(), Promise.withResolvers<boolean>()]
    let [looks, reads] = [0, 0]
    const { ring } = openRing(
      () => {
        looks++
        return state
      },
      undefined,
      () => answers[reads++]?.promise ?? Promise.resolve(false),
    )
    await ring.start()
    // The next look reads beside the first read. The key is revoked between them, and the second answer comes first.
    Object.assign(state, { active: 0, newest: '2' })
    await vi.waitFor(() => expect(reads).toBe(2), soon)
    answers[1]?.resolve(false)
    await vi.waitFor(() => expect(ring.lookup('k')).toBeUndefined(), soon)
    answers[0]?.resolve(true)
    expect(await isSeen(ring, () => looks)).toBe(false)
    await ring.close()
  })

  test('is not put back by such an answer either if a load has ended meanwhile, though it began at the same fold', async () => {
    const state = { active: 1, revoked: [] as string[], newest: '1' }
    const answers = [Promise.withResolvers<boolean>(), Promise.withResolvers<boolean>()]
    const [reloading, repairing] = [Promise.withResolvers<boolean>(), Promise.withResolvers<boolean>()]
    let [looks, loads, reads] = [0, 0, 0]
    const { ring, clock } = openRing(
      () => {
        looks++
        return state
      },
      async () => ++loads === 1 || (loads === 2 ? reloading : repairing).promise,
      () => answers[reads++]?.promise ?? Promise.resolve(false),
    )
    await ring.start()
    clock.advance(defaultKeyRingOptions.reloadMsMax)
    await expect.poll(() => loads).toBe(2)
    // A look reads changes beside the load. The key is revoked after that, and the load does not have it any more.
    Object.assign(state, { active: 0, newest: '2' })
    await expect.poll(() => reads).toBe(1)
    reloading.resolve(false)
    await expect.poll(() => ring.lookup('k')).toBeUndefined()
    // The next look reads the changes again. It gets its answer after this one, and so does a load that would repair what this one did.
    answers[0]?.resolve(true)
    expect(await isSeen(ring, () => looks)).toBe(false)
    answers[1]?.resolve(false)
    repairing.resolve(false)
    await ring.close()
  })

  test('stays refused for 300 s after it has left the view, though the read table still has it as active', async () => {
    const state = { active: 1, revoked: ['k'] }
    const { ring, clock } = openRing(() => state)
    await ring.start()
    expect(ring.lookup('k')).toBeUndefined()
    state.revoked = []
    clock.advance(299_000)
    await expect.poll(() => ring.isFresh()).toBe(true)
    expect(ring.lookup('k')).toBeUndefined()
    // Without the refusal it would pass all the time.
    clock.advance(10_000)
    await expect.poll(() => ring.isFresh()).toBe(true)
    expect(ring.lookup('k')).toBeDefined()
    await ring.close()
  })

  test('and any other: their age is measured by a steady clock, also if the time of day steps by an hour', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const { databases } = await projected(active('k'))
      const keyRing = await startQuery(databases)
      const startedAt = Date.now()
      vi.setSystemTime(startedAt + 3_600_000)
      expect(keyRing.lookup('k')).toBeDefined()
      vi.setSystemTime(startedAt)
      await model.tables.run({ query: `DROP TABLE ${databases.base}.api_keys SYNC` })
      await vi.waitFor(() => expect(keyRing.isFresh()).toBe(false), soon)
    } finally {
      vi.useRealTimers()
    }
  })

  test('and a key whose time passes is refused then, without an event and without a fold; the fold counts it on', async () => {
    const timed = (key: string, times: Partial<ApiKeyState>) =>
      apiKeyEvent({ key, account_id: 'timed', ...times })
    const { databases, ingest, fold } = await projected(
      timed('expiring', {}),
      timed('kept', { expires_at: Date.now() + 3_600_000 }),
      timed('past', { expires_at: Date.now() - 1, account_id: 'another' }),
      timed('third', {}),
      timed('waiting', { issued_at: Date.UTC(2026, 5, 1) }),
    )
    const keyRing = await startQuery(databases)
    const known = () => ['expiring', 'kept', 'third', 'past', 'waiting'].filter(key => keyRing.lookup(key))
    expect(known()).toEqual(['expiring', 'kept', 'third'])
    const expires_at = Date.now() + 3_000
    await ingest([timed('expiring', { version: 2, expires_at })])
    await vi.waitFor(() => expect(known()).toEqual(['kept', 'third']), soon)
    expect(Date.now()).toBeGreaterThanOrEqual(expires_at)
    // The active keys follow from the events alone, so a fold at any time gives the same ones.
    await ingest([active('another')])
    await fold()
    expect(await activeKeys(model.tables, databases)).toEqual([
      'another',
      'expiring',
      'kept',
      'past',
      'third',
    ])
    expect(known()).toEqual(['kept', 'third'])
    // Those that the API accepts: without what has expired.
    const { tables } = await tablesStatus({ tables: model.tables, databases })
    expect(tables.active_keys).toBe(3)
  })

  test('is refused in every phase of a rebuild, also while it pauses the fold', async () => {
    const live = await openRebuildableModel(model)
    const keys = Array.from({ length: 12 }, (_, n) => `k${n}`)
    await live.append([campaignEvent({ campaign_id: 'c' }), ...keys.map(active)])
    await live.settled()
    const keyRing = await startQuery(live.databases)
    const left = keys.filter(key => keyRing.lookup(key) !== undefined)
    expect(left).toEqual(keys)
    const phases: string[] = []
    await live.rebuild({
      async onPhase(phase) {
        phases.push(phase)
        const key = left.shift()
        if (key === undefined) throw new Error('there are more phases than keys')
        await live.append([revoked(key)])
        await vi.waitFor(() => expect(keyRing.lookup(key), phase).toBeUndefined(), soon)
      },
    })
    expect(phases).toContain('promoting')
    await live.settled()
    for (const key of keys) expect(keyRing.lookup(key) !== undefined, key).toBe(left.includes(key))
    await live.close()
  })
})
