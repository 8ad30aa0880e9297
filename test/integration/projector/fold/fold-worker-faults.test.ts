/** Faults anywhere in the fold, in any order: in the end the tables are right, and no stamp is in doubt. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../../../contracts/events/event.ts'
import { SupersededFoldWorker } from '../../../../services/projector/fold/fold-epochs.ts'
import { type Databases, type Tables, TablesError } from '../../../../services/shared/tables/port.ts'
import { shuffledWithNoise, worldEvents } from '../../../support/arbitraries.ts'
import {
  isCampaignFold,
  isRestamp,
  lostConnection,
  type Obstacles,
  obstructed,
  timeoutExceeded,
} from '../../../support/faulty-tables.ts'
import { readModelOf } from '../../../support/model.ts'
import {
  createIngest,
  createTestFoldWorker,
  expectedReading,
  type ModelTables,
  openModelTables,
  readViews,
  type TestFoldWorker,
} from '../../../support/model-tables.ts'

const horizonMs = 60_000

describe('a fold with faults', () => {
  let model: ModelTables

  beforeAll(async () => {
    model = await openModelTables()
  })

  afterAll(() => model.dispose())

  test('after any failures the tables are right, and no row keeps a stamp that is in doubt', async () => {
    const fault = fc.constantFrom(
      ...(['none', 'none', 'none', 'none', 'none', 'none'] as const),
      ...(['lost before', 'lost after', 'timeout before', 'timeout after', 'late', 'superseded'] as const),
    )
    const scenario = worldEvents({ campaignsMax: 3, pledgesMax: 3 }).chain(events =>
      fc.tuple(
        fc.constant(events),
        shuffledWithNoise(events),
        fc.array(fault, { minLength: 4, maxLength: 14 }),
        fc.integer({ min: 1, max: 4 }),
      ),
    )
    await fc.assert(
      fc.asyncProperty(scenario, async ([events, noisy, faults, batches]) => {
        const own = await model.freshDatabases()
        const put = createIngest(model.tables, own)
        const doubted = await foldThroughFaults(model.tables, own, put, { noisy, faults, batches })
        const last = createTestFoldWorker(model.tables, own, { holder: 'last' }).foldWorker
        await last.acquireLeadership()
        // A campaign that was set aside is folded alone, beside the folds.
        const foldAgain = async () => {
          await last.fold()
          return readViews(model.tables, own)
        }
        await expect.poll(foldAgain).toEqual(expectedReading(readModelOf(events)))
        const rows = await model.tables.rows<{ foldId: string }>({
          query: `SELECT toString(fold_id) AS foldId FROM ${own.model}.campaigns FINAL`,
        })
        expect(rows.map(({ foldId }) => foldId).filter(foldId => doubted.has(foldId))).toEqual([])
        await model.drop(own)
      }),
      // A busy machine tries fewer cases. That is not a failure.
      { numRuns: 5, interruptAfterTimeLimit: 60_000 },
    )
  })
})

type Fault =
  | 'none'
  | 'lost before'
  | 'lost after'
  | 'timeout before'
  | 'timeout after'
  | 'late'
  | 'superseded'

/**
 * Folds batch after batch. Each statement that writes campaigns meets the next fault. Returns the fold_ids of the statements
 * that may have written rows and were not seen to end in time.
 */
async function foldThroughFaults(
  tables: Tables,
  databases: Databases,
  ingest: (events: readonly ChangeEvent[]) => Promise<void>,
  { noisy, faults, batches }: { noisy: ChangeEvent[]; faults: Fault[]; batches: number },
): Promise<Set<string>> {
  const doubted = new Set<string>()
  const left = [...faults]
  let current: Fault = 'none'
  let leaders = 0
  let tested: TestFoldWorker

  const obstacles: Obstacles = {
    async before(call) {
      if (!isCampaignFold(call) && !isRestamp(call)) return
      current = left.shift() ?? 'none'
      if (current !== 'none' && current !== 'superseded') doubted.add(String(call.query_params.fold_id))
      if (current === 'superseded') {
        leaders++
        await createTestFoldWorker(tables, databases, {
          holder: `rival ${leaders}`,
        }).foldWorker.acquireLeadership()
      }
      if (current === 'lost before') throw lostConnection()
      if (current === 'timeout before') throw timeoutExceeded()
    },
    after(call) {
      if (!isCampaignFold(call) && !isRestamp(call)) return
      if (current === 'lost after') throw lostConnection()
      if (current === 'timeout after') throw timeoutExceeded()
      if (current === 'late') tested.advance(horizonMs)
    },
  }

  const size = Math.ceil(noisy.length / batches)
  tested = createTestFoldWorker(obstructed(tables, obstacles), databases, { holder: 'tested', horizonMs })
  for (let from = 0; from < noisy.length; from += size) {
    await ingest(noisy.slice(from, from + size))
    try {
      await tested.foldWorker.acquireLeadership()
      await tested.foldWorker.fold()
    } catch (error) {
      if (!(error instanceof SupersededFoldWorker || (error instanceof TablesError && error.retryable)))
        throw error
    }
  }
  return doubted
}
