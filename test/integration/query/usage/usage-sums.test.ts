/**
 * The promise of the usage: whatever fails, in whatever order, the sums that the portal shows are the requests that were
 * counted. Flushes, lost answers, inserts that land late, restarts, kills and steps of the clock come in any order, on a real
 * ClickHouse.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defaultUsageRecorderOptions } from '../../../../services/query/usage/usage-recorder.ts'
import { migrate } from '../../../../services/shared/tables/migrate.ts'
import { defaultDatabases as databases, type TableInsert } from '../../../../services/shared/tables/port.ts'
import { type OwnTables, openOwnTables } from '../../../support/clickhouse.ts'
import { lostConnection } from '../../../support/faulty-tables.ts'
import { createTestRecorder, readUsage, totalOf } from '../../../support/usage.ts'

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
  | { does: 'restart'; isKill: boolean; process: number }

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
        process: fc.nat(1),
      }),
    },
  ),
  { minLength: 10, maxLength: 40 },
) as fc.Arbitrary<Step[]>

let worlds = 0

test('any order of flushes, retries, restarts and late inserts gives exact sums', {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.constantFrom(4, 1_000), async (played, rowsMax) => {
      const world = ++worlds
      const start = Date.now()
      let now = start
      let fate: Fate = 'works'
      const late: TableInsert[] = []
      const tables = {
        rows: own.tables.rows,
        async insert(insert: TableInsert) {
          if (fate === 'fails') throw lostConnection()
          if (fate === 'lands late') late.push(insert)
          else await own.tables.insert(insert)
          if (fate !== 'works') throw lostConnection()
        },
      }
      const keys = [0, 1].map(key => `world ${world} key ${key}`)
      const counted = keys.map(() => ({
        ok: 0,
        not_modified: 0,
        unauthorized: 0,
        too_many: 0,
        other: 0,
        deprecated: 0,
      }))
      const options = { ...defaultUsageRecorderOptions, batchRowsMax: 2, rowsMax }
      let lost = 0
      let runs = 0
      const open = () =>
        createTestRecorder({
          tables,
          databases,
          process: `world ${world} run ${++runs}`,
          now: () => now,
          options,
          observer: {
            flushed: () => {},
            failed: () => {},
            state(state) {
              lost += state.lost
            },
          },
        })
      // Two processes count at the same time. The requests alternate between them.
      const processes = [open(), open()]
      let turn = 0

      for (const step of played) {
        switch (step.does) {
          case 'count': {
            const sums = counted[step.key]
            for (let time = 0; sums && time < step.times; time++) {
              processes[turn++ % 2]?.count(keys[step.key] ?? '', step.status, step.isDeprecated)
              sums[statuses[step.status]]++
              if (step.isDeprecated) sums.deprecated++
            }
            break
          }
          case 'wait':
            now += step.minutes * 60_000
            break
          case 'flush':
            fate = step.fate
            for (const process of processes) await process.flush()
            fate = 'works'
            break
          case 'restart': {
            // What was counted since the last flush may be lost in a kill. Here nothing was.
            const ended = processes[step.process]
            if (step.isKill) await ended?.flush()
            else await ended?.close()
            processes[step.process] = open()
            break
          }
        }
      }
      for (const process of processes) await process.close()
      for (const insert of late.toReversed()) await own.tables.insert(insert)

      const requests = ({ deprecated: _, ...sums }: (typeof counted)[number]) =>
        Object.values(sums).reduce((sum, count) => sum + count, 0)
      let shown = 0
      for (const [index, key] of keys.entries()) {
        const total = totalOf(await readUsage(own.tables, databases, { key, issuedAt: start, now }))
        if (lost === 0) expect(total).toEqual(counted[index])
        shown += requests(total)
      }
      const all = counted.reduce((sum, sums) => sum + requests(sums), 0)
      expect(shown).toBe(all - lost)
      if (rowsMax === 1_000) expect(lost).toBe(0)
    }),
    { numRuns: 12 },
  )
})
