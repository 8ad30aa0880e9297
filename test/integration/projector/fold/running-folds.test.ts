/** A statement of the fold that still runs, for example because a disk stands still: the next leader does nothing before it has ended. */

import { describe, expect, test } from 'vitest'
import { noteDropped, promoteGeneration, watchAttempts } from '../../../../services/generations/attempts.ts'
import { dropOthers } from '../../../../services/generations/rebuilds.ts'
import { untilNoFoldRuns } from '../../../../services/projector/fold/fold-leadership.ts'
import { sleep } from '../../../../services/runtime/async/sleep.ts'
import { generationOf, qualified } from '../../../../services/tables/generation-log.ts'
import { type Statement, TablesError } from '../../../../services/tables/port.ts'
import { migrate } from '../../../../services/tables/schema/migrate.ts'
import { isOfLine, obstructed, type TablesCall } from '../../../support/clickhouse/faulty-tables.ts'
import {
  openRebuildable,
  platformHistory,
  type RebuildableModel,
} from '../../../support/generations/rebuilds.ts'
import { createTestFoldWorker } from '../../../support/projector/model-tables.ts'
import { openTestJournal, startProjector } from '../../../support/projector/running-projector.ts'
import { useFreshModel } from '../../../support/projector/use-model-tables.ts'

const monotonicMs = () => performance.now()
/** Every table that the line writes, and a column of it. */
const written: [table: string, column: string, separator?: ' ' | '\n'][] = [
  ['campaigns', 'campaign_id'],
  ['api_keys', 'api_key'],
  ['watermarks', 'shard'],
  ['fold_progress', 'projector'],
  ['quarantine', 'campaign_id'],
  ['campaign_days', 'campaign_id'],
  ['history_marks', 'shard'],
  // The table's name ends a line.
  ['campaign_days', 'campaign_id', '\n'],
]

describe('a statement of the fold that still runs', () => {
  const model = useFreshModel()

  /** Begins a statement of an earlier leader. It runs until `end`. The table's name ends with a space, or with the line. */
  async function begin(
    table: string,
    column: string,
    separator = ' ',
    databases = model.databases,
  ): Promise<{ end: () => Promise<void> }> {
    return beginAs(`INSERT INTO ${qualified(table, databases)}${separator}(${column}) `, "SELECT ''")
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

  /** Tables of a process that has to wait before it does such a work. `isOn`: whether there is something to wait for yet. */
  function watched(isWork: (call: TablesCall) => boolean, isOn = () => true) {
    let looks = 0
    const done: string[] = []
    const tables = obstructed(model.tables, {
      before(call) {
        if (call.text.includes('system.processes')) looks += Number(isOn())
        else if (isWork(call)) done.push(call.text)
      },
    })
    return {
      tables,
      done,
      async waits() {
        await expect.poll(() => looks > 1 || done.length > 0).toBe(true)
        expect(done).toEqual([])
      },
    }
  }

  async function openWorld(base: string): Promise<RebuildableModel> {
    const names = generationOf({ base, views: `${base}_shown` }, 1)
    await migrate(model.tables, names)
    const live = await openRebuildable({ tables: model.tables, databases: names })
    await live.append(platformHistory(3))
    await live.settled()
    return live
  }

  test('is waited for by the projector as it runs', async () => {
    const late = await begin('campaigns', 'campaign_id')
    const { tables, done, waits } = watched(isOfLine)
    const journal = await openTestJournal()
    const projector = startProjector({ ...journal, tables, databases: model.databases })
    await waits()
    await late.end()
    await expect.poll(() => done.length).toBeGreaterThan(0)
    await projector.stop()
    await journal.close()
  })

  test.each([
    ['new', 'reading log', 2],
    ['current', 'promoting', 1],
  ] as const)('on the %s tables is waited for by a rebuild', async (_, moment, generation) => {
    const live = await openWorld(`rebuilt_${generation}`)
    let late: Awaited<ReturnType<typeof begin>> | undefined
    // What the log has is inserted, and not selected from other tables.
    const isWork = ({ kind, text }: TablesCall) =>
      late !== undefined && kind === 'run' && /INSERT INTO \w+_(ledger|read)_\d\.(?!fold_epochs)/.test(text)
    const { tables, done, waits } = watched(isWork, () => late !== undefined)
    const rebuilding = live.rebuild({
      tables,
      async onPhase(phase) {
        if (phase !== moment) return
        late = await begin('campaigns', 'campaign_id', ' ', generationOf(live.databases, generation))
      },
    })
    rebuilding.catch(() => {})
    await waits()
    await late?.end()
    await rebuilding
    expect(done).not.toEqual([])
    await live.close()
  })

  test('and promotes is waited for by a drop', async () => {
    const live = await openWorld('dropping')
    await live.rebuild()
    const log = `${live.databases.base}.generation_log (kind, attempt, run, generation)`
    const late = await beginAs(`INSERT INTO ${log} `, "SELECT '', 0, '', 0")
    const { tables, done, waits } = watched(({ text }) => /SELECT 'dropped'|DROP DATABASE/.test(text))
    const dropping = dropOthers({ ...live, tables })
    dropping.catch(() => {})
    await waits()
    await late.end()
    await dropping
    expect(done).not.toEqual([])
    await live.close()
  })

  test.each(written)(
    'on %s is waited for by the next leader, which writes nothing meanwhile',
    async (table, column, separator) => {
      const sent: string[] = []
      const late = await begin(table, column, separator)
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
    ['drops', noteDropped, { attempt: 2, run: '', generation: 2 }],
  ] as const)(
    'and %s a generation is waited for by the fold worker that gives its attempt up',
    async (_, write, request) => {
      const { base } = model.databases
      const sent: string[] = []
      const run = async ({ query }: Statement) => void sent.push(query)
      const log = { base, tables: { ...model.tables, run } }
      await expect(write(log, request as never)).rejects.toThrow('generation')
      const [start = ''] = String(sent).split('SELECT')
      const late = await beginAs(start, "SELECT '', 0, '', 0")
      let now = 0
      const looked = Promise.withResolvers<void>()
      let isGivenUp = false
      const ask = watchAttempts({
        ...{ tables: model.tables, base, servers: [model.tables], monotonicMs: () => now },
        async sleep(ms) {
          looked.resolve()
          await sleep(ms)
        },
      })
      expect(await ask(request.attempt)).toBe(false)
      now += 60_000
      const asking = ask(request.attempt).finally(() => {
        isGivenUp = true
        looked.resolve()
      })
      await looked.promise
      expect(isGivenUp).toBe(false)
      await late.end()
      expect(await asking).toBe(true)
    },
  )

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
