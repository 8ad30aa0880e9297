/**
 * The guarantee that everything else relies on: the read tables are a function of the events. Order, number and batching of
 * the events, the fold worker and the time of the fold do not matter.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import type { Databases } from '../../../services/tables/port.ts'
import { shuffledWithNoise, worldEvents } from '../../support/events/arbitraries.ts'
import { readModelOf } from '../../support/events/model.ts'
import {
  createIngest,
  createTestFoldWorker,
  expectedReading,
  type ModelTables,
  readViews,
} from '../../support/projector/model-tables.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'
import { whileTime } from '../../support/runner/while-time.ts'

const timeLimitMs = 12_000

/** What happens to the tables, one after the other. */
type Step =
  | { do: 'ingest'; projector: number; events: ChangeEvent[] }
  | { do: 'fold' }
  | { do: 'change leader'; holder: string }

describe('the read tables as a function of the events', () => {
  const model = useModelTables()

  test('any order, duplication, staleness, batching and folding of the same events gives the model’s tables', async () => {
    await fc.assert(
      fc.asyncProperty(
        worldEvents().chain(events =>
          fc.tuple(fc.constant(events), shuffledWithNoise(events).chain(stepsOf)),
        ),
        whileTime(timeLimitMs, async ([events, steps]) => {
          await withDatabases(model, async databases => {
            await perform(model, databases, steps)
            expect(await readViews(model.tables, databases)).toEqual(expectedReading(readModelOf(events)))
          })
        }),
      ),
      { numRuns: 25 },
    )
  })

  test('a row’s stamp moves only when something in it changed that a reader can see', async () => {
    await fc.assert(
      fc.asyncProperty(
        worldEvents({ campaignsMax: 3, pledgesMax: 3 }).chain(events =>
          shuffledWithNoise(events).chain(stepsOf),
        ),
        whileTime(timeLimitMs, async steps => {
          await withDatabases(model, async databases => {
            let before = new Map<string, StampedRow>()
            await perform(model, databases, steps, async () => {
              const after = await stampedRows(model, databases)
              for (const [id, row] of after) {
                const old = before.get(id)
                if (old?.visible === row.visible) expect(row.updatedAt, `stamp of ${id}`).toBe(old.updatedAt)
                else if (old) expect(row.updatedAt, `stamp of ${id}`).toBeGreaterThan(old.updatedAt)
              }
              before = after
            })
          })
        }),
      ),
      { numRuns: 20 },
    )
  })
})

/** Cuts the events into batches of two projectors, with folds and changes of leadership between them. It ends with a fold. */
function stepsOf(events: ChangeEvent[]): fc.Arbitrary<Step[]> {
  const cut = fc.record({
    size: fc.integer({ min: 1, max: 30 }),
    projector: fc.nat(1),
    next: fc.constantFrom('fold', 'fold', 'change leader', 'nothing', 'nothing'),
  })
  return fc.array(cut, { minLength: 1, maxLength: 20 }).map(cuts => {
    const steps: Step[] = [{ do: 'change leader', holder: 'first' }]
    let from = 0
    for (const { size, projector, next } of cuts) {
      steps.push({ do: 'ingest', projector, events: events.slice(from, from + size) })
      if (next === 'fold') steps.push({ do: 'fold' })
      if (next === 'change leader') steps.push({ do: 'change leader', holder: `holder ${from}` })
      from += size
    }
    return [...steps, { do: 'ingest', projector: 0, events: events.slice(from) }, { do: 'fold' }]
  })
}

async function perform(
  { tables }: ModelTables,
  databases: Databases,
  steps: readonly Step[],
  afterFold: () => Promise<void> = async () => {},
): Promise<void> {
  const ingests = [createIngest(tables, databases, 'one'), createIngest(tables, databases, 'two')]
  let { foldWorker } = createTestFoldWorker(tables, databases)
  for (const step of steps) {
    switch (step.do) {
      case 'ingest':
        if (step.events.length > 0) await ingests[step.projector]?.(step.events)
        break
      case 'fold':
        await foldWorker.fold()
        await afterFold()
        break
      case 'change leader':
        foldWorker = createTestFoldWorker(tables, databases, { holder: step.holder }).foldWorker
        await foldWorker.acquireLeadership()
        break
      default:
        step satisfies never
    }
  }
}

interface StampedRow {
  visible: string
  updatedAt: number
}

/** The mean rate in `goal_platform` is that of all campaigns, so it moves without a change of this one. */
async function stampedRows({ tables }: ModelTables, { views }: Databases): Promise<Map<string, StampedRow>> {
  const rows = await tables.rows<{ id: string } & StampedRow>({
    query: `SELECT campaign_id AS id, toJSONString(tuple(* EXCEPT (updated_at, goal_platform))) AS visible,
              toUnixTimestamp64Milli(updated_at) AS updatedAt FROM ${views}.campaigns`,
  })
  return new Map(rows.map(({ id, ...row }) => [id, row]))
}

async function withDatabases(
  model: ModelTables,
  work: (databases: Databases) => Promise<void>,
): Promise<void> {
  const databases = await model.freshDatabases()
  try {
    await work(databases)
  } finally {
    await model.giveBack(databases)
  }
}
