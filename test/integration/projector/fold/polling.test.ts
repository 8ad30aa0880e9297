/**
 * The promise to pollers: a poller that asks for changes since the watermark of the last answer misses no change, however
 * late the fold's statements become visible.
 */
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runFoldLoop } from '../../../../services/projector/fold/fold-loop.ts'
import { foldWorkerSettings } from '../../../../services/projector/fold/fold-settings.ts'
import { createFoldWorker } from '../../../../services/projector/fold/fold-worker.ts'
import { readConfig } from '../../../../services/shared/config.ts'
import { createNotifier } from '../../../../services/shared/notifier.ts'
import { sleep } from '../../../../services/shared/sleep.ts'
import type { Databases, Tables } from '../../../../services/shared/tables/port.ts'
import { isCampaignFold, isRestamp, lostConnection } from '../../../support/faulty-tables.ts'
import { createIngest, type ModelTables, openModelTables } from '../../../support/model-tables.ts'
import { campaignEvent } from '../../../support/sample-events.ts'

// A statement has half of it, also on a machine that is busy with other suites.
const horizonMs = 2_000
const rounds = 20

/** What happens to one statement that writes campaigns. */
interface Fate {
  /** How long it runs before its rows are visible. */
  visibleAfterMs: number
  /** The connection breaks, before or after the rows are visible, so its end is not seen. */
  isLost: boolean
}

describe('a poller', () => {
  let model: ModelTables

  beforeAll(async () => {
    model = await openModelTables()
  })

  afterAll(() => model.dispose())

  test('that continues from the watermark misses no change, although statements end late or are not seen to end', async () => {
    const databases = await model.freshDatabases()
    const stop = new AbortController()
    const notifier = createNotifier()
    const landing: Promise<void>[] = []
    const folding = runFoldLoop(
      {
        foldWorker: createFoldWorker({
          tables: slowed(model.tables, fates(), landing),
          databases,
          holder: 'fold-worker',
          settings: {
            ...foldWorkerSettings(readConfig({})),
            horizonMs,
            settleMs: 0,
            campaignsPerStatementMax: 5,
          },
          monotonicMs: () => performance.now(),
          sleep,
          random: () => 0,
        }),
        leads: () => true,
        notifier,
        idleMsMax: 50,
        retryMsMax: 60_000,
        onFold: () => {},
        onRetry: () => {},
        onSuperseded: () => {},
        onLeadership: () => {},
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
        // Each campaign changes once or twice, so a missed change is not hidden by a later one.
        const changed = [round, (round * 7) % rounds]
        await ingest(
          changed.map(n => campaignEvent({ campaign_id: `c${n}`, version: round, title: `title ${round}` })),
        )
        notifier.notify()
        await delay(120)
      }
      // Everything is folded, and every statement has ended, before the poller polls for the last time.
      await quiet(model.tables, databases)
    } finally {
      stop.abort()
      await Promise.all([folding, polling, ...landing])
    }
    await delay(horizonMs)
    await poller.poll()
    expect(poller.mirror).toEqual(await titles(model.tables, databases))
    expect(poller.mirror.size).toBe(rounds + 1)
    // It asks for changes and does not fetch everything each time: a whole horizon after the last change there is none.
    await delay(horizonMs / 2)
    await poller.poll()
    const fetched = poller.fetched()
    await poller.poll()
    expect(poller.fetched()).toBe(fetched)
  })
})

/** One fate after the other: most statements are quick, some take more than half or all of the horizon, some are lost. */
function fates(): () => Fate {
  const quick = fc.constant({ visibleAfterMs: 0, isLost: false })
  const late = fc.record({
    visibleAfterMs: fc.constantFrom(0.6 * horizonMs, 1.25 * horizonMs, 2.25 * horizonMs),
    isLost: fc.constant(false),
  })
  const lost = fc.record({
    visibleAfterMs: fc.constantFrom(0, 0.2 * horizonMs, 0.4 * horizonMs),
    isLost: fc.constant(true),
  })
  const fate = fc.oneof(
    { weight: 10, arbitrary: quick },
    { weight: 2, arbitrary: late },
    { weight: 1, arbitrary: lost },
  )
  const drawn = fc.sample(fate, { numRuns: 20, seed: 11 })
  return () => drawn.shift() ?? { visibleAfterMs: 0, isLost: false }
}

/** Tables whose statements over campaigns take the time that their fate says. The stamp is of the start, the rows appear at the end. */
function slowed(tables: Tables, nextFate: () => Fate, landing: Promise<void>[]): Tables {
  return {
    ...tables,
    async run(statement) {
      const call = { kind: 'run', text: statement.query, query_params: {} } as const
      if (!isCampaignFold(call) && !isRestamp(call)) return tables.run(statement)
      const { visibleAfterMs, isLost } = nextFate()
      // ClickHouse cancels a lost statement after half the horizon.
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

/** A consumer that keeps a copy of titles as the API allows it: by stamp, from the watermark of its last answer. */
function createPoller(tables: Tables, { views }: Databases) {
  const mirror = new Map<string, string>()
  let since = 0
  let fetched = 0

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
    since = clock?.asOf ?? since
  }

  return {
    mirror,
    poll,
    fetched: () => fetched,
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        await poll()
        await delay(25)
      }
    },
  }
}

/** Resolves when every batch is folded and recorded, also of campaigns that were set aside. */
async function quiet(tables: Tables, { model }: Databases): Promise<void> {
  for (;;) {
    const [row] = await tables.rows<{ pending: number }>({
      query: `SELECT (SELECT max(sequence) FROM ${model}.batch_log)
                > (SELECT max(arrayMax(folded.sequence)) FROM ${model}.fold_log WHERE notEmpty(folded))
                OR (SELECT countIf(is_set_aside AND is_behind) FROM ${model}.set_aside FINAL) > 0 AS pending`,
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
