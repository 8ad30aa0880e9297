/**
 * The promise to pollers: a poller that asks for changes since the watermark of the last answer misses no change, however
 * late the fold's statements become visible, and whether their end is seen or not.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runFoldLoop } from '../../../../services/projector/fold/fold-loop.ts'
import { foldWorkerSettings } from '../../../../services/projector/fold/fold-settings.ts'
import { createFoldWorker } from '../../../../services/projector/fold/fold-worker.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import { createNotifier } from '../../../../services/runtime/notifier.ts'
import { sleep } from '../../../../services/runtime/sleep.ts'
import type { Databases, Tables } from '../../../../services/tables/port.ts'
import { isCampaignFold, isWatermark, lostConnection } from '../../../support/faulty-tables.ts'
import { createIngest, type ModelTables, openModelTables } from '../../../support/model-tables.ts'
import { createPoller } from '../../../support/poller.ts'
import { campaignEvent } from '../../../support/sample-events.ts'

const rounds = 12
// Only a busy machine takes this long.
const foldedMsMax = 180_000

/** What happens to one statement that writes campaigns. */
interface Fate {
  /** How long it runs before its rows are visible. */
  visibleAfterMs: number
  /** The connection breaks, so its end is not seen. */
  isLost: boolean
}

describe('a poller', () => {
  let model: ModelTables

  beforeAll(async () => {
    model = await openModelTables()
  })

  afterAll(() => model.dispose())

  test('that continues from the watermark misses no change, although statements end late or are not seen to end', {
    timeout: 2 * foldedMsMax,
  }, async () => {
    const databases = await model.freshDatabases()
    const stop = new AbortController()
    const notifier = createNotifier()
    const running = new Set<Promise<void>>()
    let lost = 0
    const folding = runFoldLoop(
      {
        foldWorker: createFoldWorker({
          tables: slowed(model.tables, fates(), running),
          databases,
          holder: 'fold-worker',
          settings: { ...foldWorkerSettings(readConfig({})), campaignsPerStatementMax: 5 },
          monotonicMs: () => performance.now(),
          sleep,
          random: () => 0,
          // What is delayed here does not stand in `system.processes` yet.
          untilNoneRuns: async () => void (await Promise.all(running)),
        }),
        leads: () => true,
        notifier,
        idleMsMax: 50,
        retryMsMax: 60_000,
        onFold: () => {},
        onRetry: () => lost++,
        onSuperseded: () => {},
        onLeadership: () => {},
        now: Date.now,
        monotonicMs: () => performance.now(),
        sleep: (ms, signal) => sleep(ms / 10, signal),
      },
      stop.signal,
    )
    const poller = createPoller(model.tables, databases)
    /** What a poller that fetches everything each time would have fetched. */
    let everything = 0
    const polling = (async () => {
      for (; !stop.signal.aborted; await delay(50)) {
        await poller.poll()
        everything += poller.mirror.size
      }
    })()
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
      await folded(model.tables, databases)
    } finally {
      stop.abort()
      await Promise.all([folding, polling])
    }
    expect(lost).toBeGreaterThan(0)
    await poller.poll()
    expect(poller.mirror).toEqual(await poller.titles())
    expect(poller.mirror.size).toBe(rounds + 1)
    expect(poller.fetched()).toBeLessThan(everything / 2)
  })
})

/** One fate after the other: most statements are quick, some take long, some are lost, and land later. */
function fates(): () => Fate {
  const next: Fate[] = [
    { visibleAfterMs: 0, isLost: false },
    { visibleAfterMs: 500, isLost: true },
    { visibleAfterMs: 0, isLost: false },
    { visibleAfterMs: 1_500, isLost: false },
    { visibleAfterMs: 0, isLost: true },
    { visibleAfterMs: 1_500, isLost: true },
    { visibleAfterMs: 500, isLost: false },
  ]
  return () => next.shift() ?? { visibleAfterMs: 0, isLost: false }
}

/**
 * Tables whose statements over campaigns take the time that their fate says. The stamp and the fence are of the start, the rows
 * appear at the end. A watermark that was written meanwhile would be a lie: it throws.
 */
function slowed(tables: Tables, nextFate: () => Fate, running: Set<Promise<void>>): Tables {
  return {
    ...tables,
    async run(statement) {
      const call = { kind: 'run', text: statement.query, query_params: statement.query_params ?? {} } as const
      if (isWatermark(call) && running.size > 0) throw new Error('a watermark beside a statement of the fold')
      if (!isCampaignFold(call)) return tables.run(statement)
      const { visibleAfterMs, isLost } = nextFate()
      const begun = statement.query.replaceAll(
        "now64(3, 'UTC')",
        `(now64(3, 'UTC') - INTERVAL ${visibleAfterMs} MILLISECOND)`,
      )
      // Like a statement that has begun: an epoch that is taken later does not stop it.
      const query =
        visibleAfterMs > 0 ? begun.replace(/\(SELECT max\(\(epoch, holder\)\).*?\) = \(.*?\)/, 'true') : begun
      const landed = delay(visibleAfterMs).then(() => tables.run({ ...statement, query }))
      const tracked = landed.then(
        () => void running.delete(tracked),
        () => void running.delete(tracked),
      )
      running.add(tracked)
      if (isLost) throw lostConnection()
      await landed
    },
  }
}

/** Resolves when every batch is recorded as folded. */
async function folded(tables: Tables, { ledger }: Databases): Promise<void> {
  const isDone = async () => {
    const [row] = await tables.rows<{ isDone: number }>({
      query: `SELECT (SELECT max(sequence) FROM ${ledger}.batch_log)
                = (SELECT max(sequence) FROM ${ledger}.fold_progress WHERE is_folded) AS isDone`,
    })
    return row?.isDone
  }
  await expect.poll(isDone, { timeout: foldedMsMax, interval: 50 }).toBe(1)
}
