/**
 * Only one fold worker at a time: a superseded one writes nothing and records nothing, however late it continues. After a statement whose
 * answer was not seen, the next thing that happens is a new epoch, and a look that nothing of an older one runs. And statements that
 * take too long, on a server that is too busy, too.
 */

import { beforeEach, describe, expect, test } from 'vitest'
import { SupersededFoldWorker } from '../../../../services/projector/fold/fold-epochs.ts'
import type { FoldWorker } from '../../../../services/projector/fold/fold-worker.ts'
import { qualified } from '../../../../services/tables/generation-log.ts'
import type { Tables } from '../../../../services/tables/port.ts'
import {
  isCampaignFold,
  isFoldRecord,
  isKeyFold,
  isOfLine,
  isWatermark,
  lostConnection,
  type Obstacles,
  obstructed,
  type TablesCall,
  timeoutExceeded,
} from '../../../support/clickhouse/faulty-tables.ts'
import { readModelOf } from '../../../support/events/model.ts'
import { apiKeyEvent, campaignEvent } from '../../../support/events/sample-events.ts'
import { column as columnOf, stampsById } from '../../../support/projector/fold-records.ts'
import {
  createIngest,
  createTestFoldWorker,
  expectedReading,
  readViews,
} from '../../../support/projector/model-tables.ts'
import { useFreshModel } from '../../../support/projector/use-model-tables.ts'

const lineTables = ['campaigns', 'api_keys', 'watermarks', 'fold_progress', 'quarantine']

const model = useFreshModel()

describe('the fence of the fold', () => {
  beforeEach(async () => {
    // Rows that a superseded fold worker wrote must not be merged away before they are looked for.
    for (const table of lineTables)
      await model.tables.run({ query: `SYSTEM STOP MERGES ${qualified(table, model.databases)}` })
  })

  function foldWorkerNamed(holder: string, tables: Tables = model.tables): FoldWorker {
    return createTestFoldWorker(tables, model.databases, { holder, PLEDGEVIEW_FOLD_CAMPAIGNS_MAX: 1 })
      .foldWorker
  }

  const column = (query: string) => columnOf(model.tables, query)
  const titles = () => column(`SELECT title AS value FROM ${model.databases.views}.campaigns ORDER BY value`)

  test('if two fold workers get the same epoch, at most one writes', async () => {
    const foldWorker = foldWorkerNamed('m')
    await foldWorker.acquireLeadership()
    const [epoch] = await column(`SELECT max(epoch) AS value FROM ${model.databases.ledger}.fold_epochs`)
    const alsoTaken = (holder: string) =>
      model.tables.run({
        query: `INSERT INTO ${model.databases.ledger}.fold_epochs (epoch, holder) SELECT {epoch:UInt64}, {holder:String}`,
        query_params: { epoch, holder },
      })
    await alsoTaken('a')
    await model.ingest([campaignEvent({ campaign_id: 'a' })])
    await foldWorker.fold()
    expect(await titles()).toEqual(['Title of a'])
    await alsoTaken('z')
    await model.ingest([campaignEvent({ campaign_id: 'b' })])
    await expect(foldWorker.fold()).rejects.toBeInstanceOf(SupersededFoldWorker)
    expect(await titles()).toEqual(['Title of a'])
  })

  test('a fold worker that shares an epoch with another takes the next one', async () => {
    let isFirst = true
    const tables = obstructed(model.tables, {
      async after({ kind, text }) {
        if (!isFirst || kind !== 'run' || !text.includes('fold_epochs (epoch, holder)')) return
        isFirst = false
        await model.tables.run({
          query: `INSERT INTO ${model.databases.ledger}.fold_epochs (epoch, holder)
                  SELECT max(epoch), 'rival' FROM ${model.databases.ledger}.fold_epochs`,
        })
      },
    })
    await foldWorkerNamed('a', tables).acquireLeadership()
    const epochs = await column(
      `SELECT (epoch, holder) AS value FROM ${model.databases.ledger}.fold_epochs ORDER BY value`,
    )
    expect(epochs).toEqual([
      [1, 'a'],
      [1, 'rival'],
      [2, 'a'],
    ])
  })

  test('every statement of a leader that arrives after the next epoch was taken writes nothing', async () => {
    const sent: TablesCall[] = []
    let isHeavy = true
    const old = createTestFoldWorker(
      obstructed(model.tables, {
        before(call) {
          if (isOfLine(call)) sent.push(call)
          old.advance(1_000)
          if (!isCampaignFold(call) || !isHeavy) return
          // The first statement is refused, the campaign goes into quarantine, and is tried alone.
          isHeavy = call.query_params.campaign === 'a'
          if (call.query_params.campaign === undefined) throw timeoutExceeded()
        },
      }),
      model.databases,
      { holder: 'old' },
    )
    await old.foldWorker.acquireLeadership()
    await model.ingest([campaignEvent({ campaign_id: 'a' }), apiKeyEvent({ key: 'k', account_id: 'acc' })])
    isHeavy = true
    for (let fold = 0; fold < 2; fold++)
      await old.foldWorker.fold().catch(() => old.foldWorker.acquireLeadership())
    await model.ingest([campaignEvent({ campaign_id: 'b' })])
    await old.foldWorker.fold()
    for (const table of lineTables) {
      expect(
        sent.filter(({ text }) => text.includes(`INSERT INTO ${qualified(table, model.databases)}`)),
      ).not.toEqual([])
    }

    await foldWorkerNamed('next').acquireLeadership()
    // What they would write now: newer states, and a fold that was not recorded.
    await model.ingest([
      campaignEvent({ campaign_id: 'a', version: 2, title: 'newer' }),
      campaignEvent({ campaign_id: 'b', version: 2, title: 'newer' }),
      apiKeyEvent({ key: 'l', account_id: 'acc' }),
    ])
    const rowsOf = () =>
      Promise.all(
        lineTables.map(table => column(`SELECT count() AS value FROM ${qualified(table, model.databases)}`)),
      )
    const before = await rowsOf()
    for (const { text, query_params } of sent) await model.tables.run({ query: text, query_params })
    expect(await rowsOf()).toEqual(before)
  })
})

describe('the fold', () => {
  /** A worker in two pieces, with a watermark that is due before each. `did`: its statements that write, and its looks. */
  function foldWorkerOver({ before, after }: Obstacles, holder = 'fold-worker') {
    const did: string[] = []
    const tested = createTestFoldWorker(
      obstructed(model.tables, {
        async before(call) {
          tested.advance(600)
          if (call.kind === 'run') did.push(tableOf(call))
          await before?.(call)
        },
        ...(after && { after }),
      }),
      model.databases,
      { holder, PLEDGEVIEW_FOLD_CAMPAIGNS_MAX: 1, untilNoneRuns: async () => void did.push('none runs') },
    )
    return { ...tested, did }
  }

  const recordedFolds = async () =>
    (
      await model.tables.rows({
        query: `SELECT fold_id FROM ${model.databases.ledger}.fold_progress FINAL`,
      })
    ).length

  const kinds: [string, (call: TablesCall) => boolean][] = [
    ['a fold of keys', isKeyFold],
    ['a fold of campaigns', isCampaignFold],
    ['a watermark', isWatermark],
    ['a record of a fold', isFoldRecord],
  ]
  const sides = ['before', 'after'] as const

  test.each(kinds.flatMap(([what, isOne]) => sides.map(side => ({ what, isOne, side }))))(
    'takes a new epoch before anything else if the connection was lost $side $what ran',
    async ({ isOne, side }) => {
      let isSpent = true
      const { foldWorker, did } = foldWorkerOver({
        [side](call: TablesCall) {
          if (isSpent || !isOne(call)) return
          isSpent = true
          throw lostConnection()
        },
      })
      await foldWorker.acquireLeadership()
      const events = [
        campaignEvent({ campaign_id: 'a' }),
        campaignEvent({ campaign_id: 'b' }),
        apiKeyEvent({ key: 'k', account_id: 'acc' }),
      ]
      await model.ingest(events)
      isSpent = false
      await expect(foldWorker.fold()).rejects.toMatchObject({ message: 'the connection was lost' })
      did.length = 0
      await expect(foldWorker.fold()).rejects.toBeInstanceOf(SupersededFoldWorker)
      expect(did).toEqual([])
      await foldWorker.acquireLeadership()
      expect(did.slice(0, 2)).toEqual(['fold_epochs', 'none runs'])
      await foldWorker.fold()
      expect(await readViews(model.tables, model.databases)).toEqual(expectedReading(readModelOf(events)))
      expect(await recordedFolds()).toBe(1)
      expect(await foldWorker.fold()).toBeUndefined()
    },
  )

  test('that ClickHouse cancelled is split and finishes, and what was written before it was cancelled keeps its stamp', async () => {
    const pieces: unknown[] = []
    let first: Record<string, number> = {}
    const tested = createTestFoldWorker(
      obstructed(model.tables, {
        async before(call) {
          if (!isCampaignFold(call)) return
          pieces.push(call.query_params.pieces)
          if (Number(call.query_params.pieces) >= 16) return
          // Half of it was already written when it was cancelled.
          const half = { ...call.query_params, pieces: 2, piece: 0 }
          await model.tables.run({ query: call.text, query_params: half })
          if (pieces.length === 1) first = await stampsById(model)
          throw timeoutExceeded()
        },
      }),
      model.databases,
    )
    await tested.foldWorker.acquireLeadership()
    const events = Array.from({ length: 40 }, (_, n) => campaignEvent({ campaign_id: `c${n}` }))
    await model.ingest(events)
    expect(await tested.foldWorker.fold()).toMatchObject({ campaigns: 40, statements: 16 })
    // Only what did not end is split further. What has ended is not run again.
    expect(pieces).toEqual([1, ...Array.from({ length: 4 }, () => [4, 16, 16, 16, 16]).flat()])
    expect(await readViews(model.tables, model.databases)).toEqual(expectedReading(readModelOf(events)))
    expect(Object.keys(first).length).toBeGreaterThan(5)
    expect(await stampsById(model)).toMatchObject(first)
  })

  // CI called it a lost change: under load, each fold ended at a statement that notes something, and began anew for three minutes.
  test('on a server that is too busy for any statement in the short time, each has the long time until a fold is quick', async () => {
    const bounds: number[] = []
    let unbounded = 0
    let needsMs = 4_000
    // The test says how long a statement takes, not the machine.
    const bound = /max_execution_time = [\d.]+/g
    const patient: Tables = {
      ...model.tables,
      run: ({ query, ...rest }, options) =>
        model.tables.run({ query: query.replaceAll(bound, 'max_execution_time = 0'), ...rest }, options),
    }
    const busy = obstructed(patient, {
      before(call) {
        const [, seconds] = /max_execution_time = ([\d.]+)/.exec(call.text) ?? []
        unbounded += Number(isOfLine(call) && seconds === undefined)
        if (!isOfLine(call) || seconds === undefined) return
        bounds.push(Number(seconds) * 1_000)
        tested.advance(needsMs)
        if (Number(seconds) * 1_000 < needsMs) throw timeoutExceeded()
      },
    })
    const tested = createTestFoldWorker(busy, model.databases, {
      PLEDGEVIEW_FOLD_MS_MAX: 2_500,
      PLEDGEVIEW_FOLD_ALONE_MS_MAX: 10_000,
    })
    await expect(tested.foldWorker.acquireLeadership()).rejects.toThrow('TIMEOUT_EXCEEDED')
    const events = [campaignEvent({ campaign_id: 'c' })]
    await model.ingest(events)
    await tested.foldWorker.acquireLeadership()
    await tested.foldWorker.fold()
    expect(await readViews(model.tables, model.databases)).toEqual(expectedReading(readModelOf(events)))
    needsMs = 10
    for (const version of [2, 3]) {
      bounds.length = 0
      await model.ingest([campaignEvent({ campaign_id: 'c', version, title: `version ${version}` })])
      await tested.foldWorker.fold()
      expect(new Set(bounds)).toEqual(new Set([version === 2 ? 10_000 : 2_500]))
    }
    expect(unbounded).toBe(0)
  })

  test('batches that come while a fold runs are for the next one, whole', async () => {
    const first = createIngest(model.tables, model.databases, 'first')
    const late = createIngest(model.tables, model.databases, 'late')
    const key = apiKeyEvent({ key: 'pv_live_late', account_id: 'a1' })
    let isDue = true
    const tables = obstructed(model.tables, {
      async before(call) {
        if (!isDue || !isOfLine(call) || !call.text.includes('.fold_progress')) return
        isDue = false
        await late([key])
      },
    })
    const { foldWorker } = createTestFoldWorker(tables, model.databases, { holder: 'tested' })
    await foldWorker.acquireLeadership()
    await first([campaignEvent({ campaign_id: 'c1' })])
    await foldWorker.fold()
    expect(isDue).toBe(false)
    expect(await foldWorker.fold()).toMatchObject({ campaigns: 0, keys: 1 })
    expect(await foldWorker.fold()).toBeUndefined()
    const keys = await model.tables.rows({
      query: `SELECT api_key FROM ${model.databases.base}.api_keys FINAL`,
    })
    expect(keys).toEqual([{ api_key: 'pv_live_late' }])
  })
})

function tableOf({ text }: TablesCall): string {
  return /INSERT INTO \w+\.(\w+)/.exec(text)?.[1] ?? text
}
