/** The swap of a rebuild: it happens once and whole, and shows nothing less than before. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { countLive, swappedTables } from '../../../services/generations/build/shadow-tables.ts'
import { rebuildStatus } from '../../../services/generations/rebuilds.ts'
import { completeSwap } from '../../../services/generations/swap/swap.ts'
import { sleep } from '../../../services/runtime/sleep.ts'
import { answerError } from '../../../services/tables/clickhouse-errors.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { damage, inventedCampaign } from '../../support/damage.ts'
import { lostConnection, obstructed, type TablesCall } from '../../support/faulty-tables.ts'
import { column } from '../../support/fold-records.ts'
import { exceptionText } from '../../support/misbehaving-server.ts'
import { readModelOf } from '../../support/model.ts'
import { expectedReading, type ModelTables, openModelTables, readViews } from '../../support/model-tables.ts'
import { openRebuildableModel, platformHistory, type RebuildableModel } from '../../support/rebuilds.ts'
import { pledgeEvent } from '../../support/sample-events.ts'

const realTime = { monotonicMs: () => performance.now(), sleep }

let model: ModelTables
let live: RebuildableModel

beforeAll(async () => {
  model = await openModelTables()
})
afterAll(() => model.dispose())
beforeEach(async () => {
  live = await openRebuildableModel(model)
})
afterEach(() => live.close())

describe('the swap', () => {
  const isExchange = ({ text }: TablesCall) => text.startsWith('EXCHANGE TABLES')

  test('never shows less than before: what arrived before the fold pause is in the new tables', async () => {
    await live.append(platformHistory(12))
    await live.settled()
    const late = pledgeEvent({ campaign_id: 'c1', pledge_id: 'late' })
    const pledges = `SELECT pledge_count AS value FROM ${live.databases.views}.campaigns WHERE campaign_id = 'c1'`
    const before = Number((await column(live.tables, pledges))[0])
    let isSaid = false
    const shown: unknown[] = []
    await live.rebuild({
      tables: obstructed(live.tables, {
        // The last moment at which it can be shown before the swap.
        async before({ text, query_params }) {
          if (
            isSaid ||
            !text.includes('fold_epochs (') ||
            !String(query_params.holder).startsWith('rebuild/')
          )
            return
          isSaid = true
          await live.append([late])
          await live.settled()
          shown.push(...(await column(live.tables, pledges)))
        },
        async after({ text }) {
          if (text.startsWith('EXCHANGE TABLES')) shown.push(...(await column(live.tables, pledges)))
        },
      }),
    })
    expect(shown).toEqual([before + 1, before + 1])
  })

  test('of a process that stood still until others fold again swaps nothing, and is tried again', async () => {
    await live.append(platformHistory(12))
    await live.settled()
    const pledges = `SELECT pledge_count AS value FROM ${live.databases.views}.campaigns WHERE campaign_id = 'c1'`
    const before = Number((await column(live.tables, pledges))[0])
    const shown: unknown[] = []
    let exchanges = 0
    await live.rebuild({
      tables: obstructed(live.tables, {
        async before({ text }) {
          if (!text.startsWith('EXCHANGE TABLES')) return
          exchanges++
          if (exchanges > 1) return
          // As if the process had stood still for longer than the pause lasts.
          await live.tables.run({
            query: `ALTER TABLE ${live.databases.ledger}.fold_epochs UPDATE taken_at = taken_at - INTERVAL 1 MINUTE WHERE true
              SETTINGS mutations_sync = 1`,
          })
          await live.append([pledgeEvent({ campaign_id: 'c1', pledge_id: 'late' })])
          await live.settled()
          shown.push(...(await column(live.tables, pledges)))
        },
        async after({ text }) {
          if (text.startsWith('EXCHANGE TABLES')) shown.push(...(await column(live.tables, pledges)))
        },
      }),
    })
    expect(shown).toEqual([before + 1, before + 1])
    expect(exchanges).toBe(2)
    const permits = `SELECT name AS value FROM system.tables WHERE database = '${live.databases.model}' AND name LIKE 'swap%'`
    expect(await column(live.tables, permits)).toEqual([])
  })

  test.each(['before', 'after'] as const)('happens once when its answer is lost %s it', async when => {
    const events = platformHistory(12)
    await live.append(events)
    await live.settled()
    await damage(live, inventedCampaign)
    let lost = 0
    const losing = (call: TablesCall) => {
      if (!isExchange(call) || lost > 0) return
      lost++
      throw lostConnection()
    }
    await live.rebuild({ tables: obstructed(live.tables, { [when]: losing }) })
    expect(lost).toBe(1)
    expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
  })

  test('of tables that a projector inserts into at that moment: ClickHouse refuses that, and it is repeated', async () => {
    let isSwapping = false
    let refused = 0
    const message = 'Table model.pledge_ledger does not match model_shadow.pledge_ledger'
    const own = await openRebuildableModel({
      ...model,
      tables: obstructed(model.tables, {
        before({ text }) {
          // Between the look for the table's name and the look for its UUID, ClickHouse exchanged the tables.
          if (!isSwapping || refused > 0 || !/^INSERT INTO \w+\.pledge_ledger$/.test(text)) return
          refused++
          throw answerError(500, exceptionText(741, 'TABLE_UUID_MISMATCH', message), 'model.pledge_ledger')
        },
      }),
    })
    try {
      const events = platformHistory(12)
      await own.append(events)
      await own.settled()
      const late = pledgeEvent({ campaign_id: 'c1', pledge_id: 'late' })
      await own.rebuild({
        tables: obstructed(model.tables, {
          async before(call) {
            if (!isExchange(call)) return
            isSwapping = true
            await own.append([late])
            await vi.waitUntil(() => refused > 0, { timeout: 60_000, interval: 5 })
          },
        }),
      })
      await own.settled()
      expect(await readViews(own.tables, own.databases)).toEqual(
        expectedReading(readModelOf([...events, late])),
      )
    } finally {
      // It throws what ended the projector.
      await own.close()
    }
  })

  test('is completed by the next fold worker if ClickHouse died in it, and the rebuild continues', async () => {
    const events = platformHistory(12)
    await live.append(events)
    await live.settled()
    await damage(live, inventedCampaign)
    const dying: Tables = {
      ...live.tables,
      async run(statement, options) {
        if (!statement.query.startsWith('EXCHANGE TABLES')) return live.tables.run(statement, options)
        // The permit of the swap, and the first table.
        await live.tables.run({ query: statement.query.split(',', 2).join(',') })
        throw new Error('killed')
      },
    }
    await expect(live.rebuild({ tables: dying })).rejects.toThrow('killed')
    const state = await rebuildStatus(live)
    const rebuilt = state?.detail.tableIds ?? {}
    expect(await countLive(live.tables, live.databases, rebuilt)).toBe(1)
    await completeSwap(live.tables, live.databases, realTime)
    expect(await countLive(live.tables, live.databases, rebuilt)).toBe(swappedTables.length)
    await completeSwap(live.tables, live.databases, realTime)
    expect(await countLive(live.tables, live.databases, rebuilt)).toBe(swappedTables.length)
    await live.rebuild()
    await live.settled()
    expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
  })

  test('of tables from before an upgrade migrates them first', async () => {
    await live.append(platformHistory(12))
    await live.settled()
    await live.rebuild()
    const { model } = live.databases
    // As if the previous tables had been made before the last migration of the read tables.
    await live.tables.run({ query: `DROP VIEW ${model}_shadow.campaign_changes` })
    await live.tables.run({
      query: `ALTER TABLE ${model}_shadow.migrations DELETE WHERE number = 3 SETTINGS mutations_sync = 1`,
    })
    await live.rebuild({ kind: 'rollback' })
    const views = `SELECT count() AS value FROM system.tables WHERE database = '${model}_shadow' AND name = 'campaign_changes'`
    expect(await column(live.tables, views)).toEqual([1])
  })
})
