/**
 * The promise to pollers: who asks for what changed since the watermark of the last answer misses no change, however
 * late the fold's statements become visible.
 */
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createFolder } from '../../../services/projector/folder.ts'
import { runFolder } from '../../../services/projector/run-folder.ts'
import { sleep } from '../../../services/projector/sleep.ts'
import { createBell } from '../../../services/shared/bell.ts'
import type { Databases, Tables } from '../../../services/shared/tables/port.ts'
import { isCampaignFold, isRestamp, lostConnection } from '../../support/faulty-tables.ts'
import {
  createIngest,
  type ModelTables,
  openModelTables,
  platformDigits,
} from '../../support/model-tables.ts'
import { campaignEvent } from '../../support/sample-events.ts'

const horizonMs = 800
const rounds = 20

/** What becomes of one statement that writes campaigns. */
interface Fate {
  /** How long it runs until its rows are visible. */
  visibleAfterMs: number
  /** Its end is not seen: the connection breaks, before the rows are visible or after. */
  isLost: boolean
}

describe('a poller', () => {
  let model: ModelTables

  beforeAll(async () => {
    model = await openModelTables()
  })

  afterAll(() => model.dispose())

  test('that goes on from the watermark misses no change, though statements end late or unseen', async () => {
    const databases = await model.freshDatabases()
    const stop = new AbortController()
    const bell = createBell()
    const landing: Promise<void>[] = []
    const folding = runFolder(
      {
        folder: createFolder({
          tables: slowed(model.tables, fates(), landing),
          databases,
          holder: 'folder',
          settings: { horizonMs, settleMs: 0, platformDigits, campaignsPerStatementMax: 5 },
          monotonicMs: () => performance.now(),
          sleep,
          random: () => 0,
        }),
        leads: () => true,
        bell,
        idleMsMax: 50,
        retryMsMax: 60_000,
        onFold: () => {},
        onRetry: () => {},
        onSuperseded: () => {},
        onTakeOver: () => {},
        now: Date.now,
        monotonicMs: () => performance.now(),
        sleep,
      },
      stop.signal,
    )
    const poller = createPoller(model.tables, databases)
    const polling = poller.run(stop.signal)
    const ingest = createIngest(model.tables, databases)
    try {
      for (let round = 1; round <= rounds; round++) {
        // Each changes once or twice: a change that was missed is not made good by a later one.
        const changed = [round, (round * 7) % rounds]
        await ingest(
          changed.map(n => campaignEvent({ campaign_id: `c${n}`, version: round, title: `title ${round}` })),
        )
        bell.ring()
        await delay(120)
      }
      // All is folded, and every statement has landed, before the poller looks for the last time.
      await quiet(model.tables, databases)
    } finally {
      stop.abort()
      await Promise.all([folding, polling, ...landing])
    }
    await delay(horizonMs)
    await poller.poll()
    expect(poller.mirror).toEqual(await titles(model.tables, databases))
    expect(poller.mirror.size).toBe(rounds + 1)
    // It asked for changes, and did not fetch everything each time.
    expect(poller.fetched()).toBeLessThan((poller.polls() * rounds) / 2)
  })
})

/** One fate after the other: most are quick, some beyond half the horizon or all of it, some lost; in the end all quick. */
function fates(): () => Fate {
  const quick = fc.constant({ visibleAfterMs: 0, isLost: false })
  const late = fc.record({ visibleAfterMs: fc.constantFrom(500, 1_000, 1_800), isLost: fc.constant(false) })
  const lost = fc.record({ visibleAfterMs: fc.constantFrom(0, 150, 300), isLost: fc.constant(true) })
  const fate = fc.oneof(
    { weight: 10, arbitrary: quick },
    { weight: 2, arbitrary: late },
    { weight: 1, arbitrary: lost },
  )
  const drawn = fc.sample(fate, { numRuns: 20, seed: 11 })
  return () => drawn.shift() ?? { visibleAfterMs: 0, isLost: false }
}

/** Tables whose statements over campaigns take the time that fate says: stamped at their start, visible at their end. */
function slowed(tables: Tables, nextFate: () => Fate, landing: Promise<void>[]): Tables {
  return {
    ...tables,
    async run(statement) {
      const call = { kind: 'run', text: statement.query, query_params: {} } as const
      if (!isCampaignFold(call) && !isRestamp(call)) return tables.run(statement)
      const { visibleAfterMs, isLost } = nextFate()
      // A lost statement that still runs is ended by ClickHouse after half the horizon.
      const ms = isLost ? Math.min(visibleAfterMs, horizonMs / 2) : visibleAfterMs
      const query = statement.query.replaceAll(
        "now64(3, 'UTC')",
        `(now64(3, 'UTC') - INTERVAL ${ms} MILLISECOND)`,
      )
      const landed = delay(ms).then(() => tables.run({ ...statement, query }))
      landing.push(landed.catch(() => {}))
      if (isLost && visibleAfterMs > 0) throw lostConnection()
      await landed
      if (isLost) throw lostConnection()
    },
  }
}

/** A consumer that keeps a mirror of titles, as the API lets it: by stamp, from the watermark of its last answer. */
function createPoller(tables: Tables, { views }: Databases) {
  const mirror = new Map<string, string>()
  let since = 0
  let fetched = 0
  let polls = 0

  async function poll(): Promise<void> {
    const [clock] = await tables.rows<{ asOf: number }>({
      query: `SELECT toUnixTimestamp64Milli(now64(3, 'UTC')) - ${horizonMs} AS asOf`,
    })
    const rows = await tables.rows<{ id: string; title: string }>({
      query: `SELECT campaign_id AS id, title FROM ${views}.campaigns
              WHERE updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')`,
      query_params: { since },
    })
    for (const { id, title } of rows) mirror.set(id, title)
    fetched += rows.length
    polls++
    since = clock?.asOf ?? since
  }

  return {
    mirror,
    poll,
    fetched: () => fetched,
    polls: () => polls,
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        await poll()
        await delay(25)
      }
    },
  }
}

/** Resolves when every batch is folded and recorded. */
async function quiet(tables: Tables, { model }: Databases): Promise<void> {
  for (;;) {
    const [row] = await tables.rows<{ pending: number }>({
      query: `SELECT (SELECT max(sequence) FROM ${model}.batch_log)
                > (SELECT max(arrayMax(folded.sequence)) FROM ${model}.fold_log WHERE notEmpty(folded)) AS pending`,
    })
    if (row?.pending === 0) return
    await delay(50)
  }
}

async function titles(tables: Tables, { views }: Databases): Promise<Map<string, string>> {
  const rows = await tables.rows<{ id: string; title: string }>({
    query: `SELECT campaign_id AS id, title FROM ${views}.campaigns`,
  })
  return new Map(rows.map(({ id, title }) => [id, title]))
}
