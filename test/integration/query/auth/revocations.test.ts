/** Revocations: a revoked key is refused soon after its event, whatever the fold is doing. */
import fc from 'fast-check'
import { pino } from 'pino'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { ApiKeyState, ChangeEvent } from '../../../../contracts/events/event.ts'
import { createKeyRing, defaultKeyRingOptions } from '../../../../services/query/auth/key-ring.ts'
import { type QueryService, startQueryService } from '../../../../services/query/service.ts'
import { memoryState } from '../../../../services/query/shared-state.ts'
import { yieldToEventLoop } from '../../../../services/runtime/async/sleep.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import { createMetrics } from '../../../../services/runtime/ops/metrics.ts'
import { defaultDatabases } from '../../../../services/tables/generations.ts'
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
  const services: QueryService[] = []

  afterEach(async () => {
    for (const service of services.splice(0)) await service.close()
  })

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
    services.push(service)
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

  // A load is not answered before the key has to be refused.
  test('is refused soon, and for good, in whatever order statements run and are answered, while others change and all keys are loaded', async () => {
    const changes = fc.constantFrom<keyof RingPlay['events']>('restore', 'change', 'reload', 'revoke', 'fold')
    const step = fc.oneof({ weight: 1, arbitrary: changes }, { weight: 4, arbitrary: fc.nat() })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80, size: 'max' }), async steps => {
        const play = await playRing()
        let wasRefused = false
        for (const step of [...steps, 'fold'] as const) {
          if (typeof step === 'number') await play.advance(step)
          else play.events[step]()
          const isRefused = play.table.isRevoked && play.ring.lookup('k') === undefined
          if (wasRefused) expect(isRefused).toBe(true)
          wasRefused = isRefused
        }
        await play.settle(({ isLoad }) => !isLoad)
        expect(play.ring.lookup('k')).toBeUndefined()
        await play.settle()
        expect(play.ring.lookup('k')).toBeUndefined()
        await play.close()
      }),
      { numRuns: 300 },
    )
  })

  test('stays refused for 300 s after it has left the view, though the read table still has it as active', async () => {
    const { ring, clock, table, settle, close } = await playRing()
    table.isRevoked = true
    await settle()
    expect(ring.lookup('k')).toBeUndefined()
    table.isRevoked = false
    clock.advance(299_000)
    await settle()
    expect(ring.lookup('k')).toBeUndefined()
    // Without the refusal it would pass all the time.
    clock.advance(10_000)
    await settle()
    expect(ring.lookup('k')).toBeDefined()
    await close()
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

interface Asked {
  isLoad: boolean
  run: () => object[]
  /** What it read, once it has run. */
  rows?: object[]
  answer: (rows: object[]) => void
}

type RingPlay = Awaited<ReturnType<typeof playRing>>

/** A ring that has the key `k`, over tables that the test changes. A statement runs some time after it was asked, and is answered after that. */
async function playRing() {
  const clock = testClock()
  const table = { newest: 1, others: 0, changedAt: 0, isRevoked: false, isActive: true }
  const asked: Asked[] = []
  let isReloaded = false

  function rowsOf({ query, query_params }: Statement): object[] {
    const row = { api_key: 'k', secret_hash: 'hash', scopes: [] }
    const { newest, others, changedAt, isRevoked, isActive } = table
    if (query.includes('revoked_keys')) {
      const revoked = isRevoked && isActive ? ['k'] : []
      return [{ newest: String(newest), active: others + Number(isActive), revoked }]
    }
    if (query.includes('is_current'))
      return changedAt > Number(query_params?.after) ? [{ ...row, is_current: isActive }] : []
    const all = Array.from({ length: others }, (_, n) => ({ ...row, api_key: `a${n}` }))
    return isActive ? [...all, row] : all
  }

  function ask(isLoad: boolean, run: () => object[]) {
    return new Promise<object[]>(answer => asked.push({ isLoad, run, answer }))
  }

  /** One of the statements runs, or is answered if it has run. */
  async function advance(which: number, of = asked): Promise<void> {
    const one = of[which % of.length]
    if (one?.rows) {
      asked.splice(asked.indexOf(one), 1)
      one.answer(one.rows)
    } else if (one) one.rows = one.run()
    await yieldToEventLoop()
  }

  /** The ring goes on for some looks, with these answers alone. */
  async function settle(isAnswered: (one: Asked) => boolean = () => true): Promise<void> {
    for (let steps = 0; steps < 100; steps++) await advance(steps, asked.filter(isAnswered))
  }

  const isLoad = (query: string) => query.includes('ORDER BY api_key')
  const ring = createKeyRing(defaultKeyRingOptions, {
    tables: { rows: statement => ask(isLoad(statement.query), () => rowsOf(statement)) as Promise<never[]> },
    databases: defaultDatabases,
    monotonicMs: clock.now,
    sleep: async () => void (await ask(false, () => [])),
    onError: error => {
      throw error
    },
  })
  const started = ring.start()
  await settle()
  await started
  return {
    ...{ ring, clock, table, advance, settle },
    events: {
      /** Another number of keys under the same fold id: all are loaded at once. */
      restore: () => void table.others++,
      /** The key changes, and stays active. */
      change() {
        if (table.isActive) table.changedAt = ++table.newest
      },
      /** The time has come to load all keys again. */
      reload() {
        if (!isReloaded) clock.advance(defaultKeyRingOptions.reloadMsMax)
        isReloaded = true
      },
      revoke: () => void Object.assign(table, { isRevoked: true }),
      fold() {
        if (table.isActive) table.changedAt = ++table.newest
        Object.assign(table, { isRevoked: true, isActive: false })
      },
    },
    async close() {
      const closed = ring.close()
      await settle()
      await closed
    },
  }
}
