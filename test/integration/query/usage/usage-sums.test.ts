/**
 * The promise of the usage: whatever fails, in whatever order, the sums that the portal shows are the requests that were
 * counted and not lost. Flushes, lost answers, inserts that land late, restarts, kills and steps of the clock come in any order, on a real
 * ClickHouse.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { requestsOf, totalOf } from '../../../../services/portal/usage/usage-view.ts'
import { createMetrics } from '../../../../services/runtime/ops/metrics.ts'
import { defaultDatabases as databases } from '../../../../services/tables/generation-log.ts'
import type { TableInsert } from '../../../../services/tables/port.ts'
import { migrate } from '../../../../services/tables/schema/migrate.ts'
import { type OwnTables, openOwnTables } from '../../../support/clickhouse/clickhouse.ts'
import { lostConnection } from '../../../support/clickhouse/faulty-tables.ts'
import { createTestRecorder, readUsage } from '../../../support/query/usage.ts'
import { whileTime } from '../../../support/runner/while-time.ts'

let own: OwnTables
beforeAll(async () => {
  own = await openOwnTables()
  await migrate(own.tables, databases)
})
afterAll(() => own.close())

const statuses = {
  200: 'ok',
  304: 'not_modified',
  401: 'unauthorized',
  429: 'too_many',
  404: 'other',
} as const
type Fate = 'works' | 'fails' | 'loses its answer' | 'lands late'
type Step =
  | { does: 'count'; key: number; status: keyof typeof statuses; isDeprecated: boolean; times: number }
  | { does: 'wait'; minutes: number }
  | { does: 'flush'; fate: Fate }
  | { does: 'restart'; isKill: boolean; process: 0 | 1 }

const steps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        does: fc.constant('count' as const),
        key: fc.nat(1),
        status: fc.constantFrom(200, 304, 401, 429, 404),
        isDeprecated: fc.boolean(),
        times: fc.integer({ min: 1, max: 4 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ does: fc.constant('wait' as const), minutes: fc.integer({ min: -2, max: 3 }) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        does: fc.constant('flush' as const),
        fate: fc.constantFrom<Fate>('works', 'fails', 'loses its answer', 'lands late'),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        does: fc.constant('restart' as const),
        isKill: fc.boolean(),
        process: fc.constantFrom(0, 1),
      }),
    },
  ),
  { minLength: 10, maxLength: 40 },
) as fc.Arbitrary<Step[]>

const none = { ok: 0, not_modified: 0, unauthorized: 0, too_many: 0, other: 0, deprecated: 0 }
type Sums = typeof none

const sumOf = (sums: readonly Sums[]) => sums.reduce((all, one) => all + requestsOf(one), 0)

interface Outcome {
  counted: Sums[]
  shown: Sums[]
  /** Requests that waited for longer than a minute. An insert whose answer was lost may have written them. */
  lost: number
  /** Requests that a killed process had not written. */
  unwritten: number
}

// The clock steps back and forth around this moment. Around midnight it would step back out of the day of some counts,
// and the portal shows no day that has not begun.
const dayMs = 86_400_000
const noon = Math.floor(Date.now() / dayMs) * dayMs + dayMs / 2

let worlds = 0

/** Two processes count at the same time. The requests alternate between them. */
async function play(played: readonly Step[]): Promise<Outcome> {
  const world = ++worlds
  const start = noon
  const keys = [0, 1].map(key => `world ${world} key ${key}`)
  const outcome: Outcome = { counted: keys.map(() => ({ ...none })), shown: [], lost: 0, unwritten: 0 }
  const late: TableInsert[] = []
  let now = start
  let fate: Fate = 'works'
  let runs = 0
  let turn = 0
  const tables = {
    rows: own.tables.rows,
    async insert(insert: TableInsert) {
      if (fate === 'fails') throw lostConnection()
      if (fate === 'lands late') late.push(insert)
      else await own.tables.insert(insert)
      if (fate !== 'works') throw lostConnection()
    },
  }
  const metrics = createMetrics()
  const open = () => {
    const process = `world ${world} run ${++runs}`
    const recorder = createTestRecorder(tables, databases, process, { now: () => now, metrics })
    return { recorder, waiting: 0 }
  }
  const processes: [ReturnType<typeof open>, ReturnType<typeof open>] = [open(), open()]

  function count({ key, status, isDeprecated }: Extract<Step, { does: 'count' }>): void {
    const process = processes[turn++ % 2 === 0 ? 0 : 1]
    process.recorder.count(keys[key] ?? '', status, isDeprecated)
    process.waiting++
    const sums = outcome.counted[key] ?? { ...none }
    sums[statuses[status]]++
    if (isDeprecated) sums.deprecated++
  }

  for (const step of played) {
    switch (step.does) {
      case 'count':
        for (let time = 0; time < step.times; time++) count(step)
        break
      case 'wait':
        now += step.minutes * 60_000
        break
      case 'flush':
        fate = step.fate
        for (const process of processes) if (await process.recorder.flush()) process.waiting = 0
        fate = 'works'
        break
      case 'restart':
        if (step.isKill) outcome.unwritten += processes[step.process].waiting
        else await processes[step.process].recorder.close()
        processes[step.process] = open()
    }
  }
  for (const { recorder } of processes) await recorder.close()
  outcome.lost = (await metrics.usageLostRequests.get()).values[0]?.value ?? 0
  for (const insert of late.toReversed()) await own.tables.insert(insert)
  for (const key of keys) {
    outcome.shown.push(totalOf((await readUsage(own.tables, databases, { key, now })).days))
  }
  return outcome
}

test('any order of flushes, retries, restarts, kills and late inserts gives exact sums', {
  timeout: 180_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      steps,
      whileTime(120_000, async played => {
        const { counted, shown, lost, unwritten } = await play(played)
        if (lost + unwritten === 0) expect(shown).toEqual(counted)
        const [wanted, found] = [sumOf(counted), sumOf(shown)]
        expect(found).toBeLessThanOrEqual(wanted)
        // A kill loses at most what its process had not written.
        expect(found).toBeGreaterThanOrEqual(wanted - lost - unwritten)
      }),
    ),
    { numRuns: 12 },
  )
})
