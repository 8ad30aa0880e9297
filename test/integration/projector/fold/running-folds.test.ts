/** A statement of the fold that still runs, for example because a disk stands still: the next leader does nothing before it has ended. */

import { describe, expect, test } from 'vitest'
import { noteDropped, promoteGeneration, untilEnded } from '../../../../services/generations/attempts.ts'
import { untilNoFoldRuns } from '../../../../services/projector/fold/fold-leadership.ts'
import { sleep } from '../../../../services/runtime/async/sleep.ts'
import { qualified } from '../../../../services/tables/generations.ts'
import { type Statement, TablesError } from '../../../../services/tables/port.ts'
import { isOfLine, obstructed } from '../../../support/clickhouse/faulty-tables.ts'
import { createTestFoldWorker } from '../../../support/projector/model-tables.ts'
import { useFreshModel } from '../../../support/projector/use-model-tables.ts'

const monotonicMs = () => performance.now()
/** Every table that the line writes, and a column of it. */
const written = [
  ['campaigns', 'campaign_id'],
  ['api_keys', 'api_key'],
  ['watermarks', 'shard'],
  ['fold_progress', 'projector'],
  ['quarantine', 'campaign_id'],
  ['campaign_days', 'campaign_id'],
  ['history_marks', 'shard'],
] as const

describe('a statement of the fold that still runs', () => {
  const model = useFreshModel()

  /** Begins a statement of an earlier leader. It runs until `end`. The table's name ends with a space, or with the line. */
  async function begin(
    table: string,
    column: string,
    separator = ' ',
  ): Promise<{ end: () => Promise<void> }> {
    return beginAs(`INSERT INTO ${qualified(table, model.databases)}${separator}(${column}) `, "SELECT ''")
  }

  /** `start`: the statement up to what it selects. */
  async function beginAs(start: string, selected: string): Promise<{ end: () => Promise<void> }> {
    const running = model.tables.run({
      query: `${start}${selected} FROM numbers(1) WHERE sleepEachRow(100) = 0
              SETTINGS function_sleep_max_microseconds_per_block = 0`,
    })
    const ended = running.catch(() => {})
    const which = { query: 'query LIKE {start:String}', query_params: { start: `${start}%` } }
    const count = async () =>
      (await model.tables.rows({ ...which, query: `SELECT 1 FROM system.processes WHERE ${which.query}` }))
        .length
    await expect.poll(count).toBe(1)
    return {
      async end() {
        await model.tables.run({ ...which, query: `KILL QUERY WHERE ${which.query} SYNC` })
        await ended
      },
    }
  }

  test.each(written)(
    'on %s is waited for by the next leader, which writes nothing meanwhile',
    async (table, column) => {
      const sent: string[] = []
      const late = await begin(table, column)
      const waited = Promise.withResolvers<void>()
      let looks = 0
      const { foldWorker } = createTestFoldWorker(
        obstructed(model.tables, { before: call => void (isOfLine(call) && sent.push(call.text)) }),
        model.databases,
        {
          untilNoneRuns: () =>
            untilNoFoldRuns(model.tables, model.databases, {
              msMax: 60_000,
              monotonicMs,
              async sleep(ms) {
                if (++looks === 2) waited.resolve()
                await sleep(ms)
              },
            }),
        },
      )
      const leading = foldWorker.acquireLeadership()
      await waited.promise
      expect(sent).toEqual([])
      await late.end()
      await leading
      expect(sent).not.toEqual([])
    },
  )

  test.each([
    ['promotes', promoteGeneration, { attempt: 1, run: '', from: 1, to: 2 }],
    ['drops', noteDropped, { attempt: 1, run: '', generation: 2 }],
  ] as const)(
    'and %s a generation is waited for by the process that gives its attempt up',
    async (_, write, request) => {
      const { base } = model.databases
      const sent: string[] = []
      const run = async ({ query }: Statement) => void sent.push(query)
      const log = { base, tables: { ...model.tables, run } }
      await expect(write(log, request as never)).rejects.toThrow('generation')
      const [start = ''] = String(sent).split('SELECT')
      const late = await beginAs(start, "SELECT '', 0, 0, ''")
      const looked = Promise.withResolvers<void>()
      let hasEnded = false
      const waiting = untilEnded(model.tables, base, {
        monotonicMs,
        async sleep(ms) {
          looked.resolve()
          await sleep(ms)
        },
      }).then(() => {
        hasEnded = true
        looked.resolve()
      })
      await looked.promise
      expect(hasEnded).toBe(false)
      await late.end()
      await waiting
    },
  )

  test('is seen also where the table’s name ends a line', async () => {
    const late = await begin('campaign_days', 'campaign_id', '\n')
    const wait = { msMax: 0, monotonicMs, sleep }
    await expect(untilNoFoldRuns(model.tables, model.databases, wait)).rejects.toThrow('still runs')
    await late.end()
  })

  test('is a retryable failure if it does not end', async () => {
    const late = await begin('campaigns', 'campaign_id')
    const waiting = untilNoFoldRuns(model.tables, model.databases, { msMax: 0, monotonicMs, sleep })
    await expect(waiting).rejects.toThrow(TablesError)
    await expect(waiting).rejects.toMatchObject({ retryable: true })
    await late.end()
  })

  test('cannot be waited for without the right to see it, and the failure says which right', async () => {
    const rows = async () => {
      throw new TablesError('not allowed', { retryable: false, type: 'ACCESS_DENIED' })
    }
    const waiting = untilNoFoldRuns({ rows }, model.databases, { msMax: 60_000, monotonicMs, sleep })
    await expect(waiting).rejects.toThrow('GRANT SELECT ON system.processes')
    await expect(waiting).rejects.toMatchObject({ retryable: false })
  })
})
