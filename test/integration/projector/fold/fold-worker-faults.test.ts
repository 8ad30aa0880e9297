import { describe, expect, test } from 'vitest'
import { isOfLine, obstructed, timeoutExceeded } from '../../../support/clickhouse/faulty-tables.ts'
import { readModelOf } from '../../../support/events/model.ts'
import { apiKeyEvent, campaignEvent } from '../../../support/events/sample-events.ts'
import {
  createIngest,
  createTestFoldWorker,
  expectedReading,
  readViews,
} from '../../../support/projector/model-tables.ts'
import { useModelTables } from '../../../support/projector/use-model-tables.ts'

describe('a fold with faults', () => {
  const model = useModelTables()

  // CI called it a lost change: under load, each fold ended at a statement that notes something, and began anew for three minutes.
  test('on a server that is too busy for any statement in the short time, each has the long time until a fold is quick', async () => {
    const own = await model.freshDatabases()
    const put = createIngest(model.tables, own)
    const bounds: number[] = []
    let needsMs = 4_000
    const busy = obstructed(model.tables, {
      before(call) {
        const [, seconds] = /max_execution_time = ([\d.]+)/.exec(call.text) ?? []
        if (!isOfLine(call) || seconds === undefined) return
        bounds.push(Number(seconds) * 1_000)
        tested.advance(needsMs)
        if (Number(seconds) * 1_000 < needsMs) throw timeoutExceeded()
      },
    })
    const tested = createTestFoldWorker(busy, own, { foldMsMax: 2_500, aloneMsMax: 10_000 })
    await expect(tested.foldWorker.acquireLeadership()).rejects.toThrow('TIMEOUT_EXCEEDED')
    const events = [campaignEvent({ campaign_id: 'c' })]
    await put(events)
    await tested.foldWorker.acquireLeadership()
    await tested.foldWorker.fold()
    expect(await readViews(model.tables, own)).toEqual(expectedReading(readModelOf(events)))
    needsMs = 10
    for (const version of [2, 3]) {
      bounds.length = 0
      await put([campaignEvent({ campaign_id: 'c', version, title: `version ${version}` })])
      await tested.foldWorker.fold()
      expect(new Set(bounds)).toEqual(new Set([version === 2 ? 10_000 : 2_500]))
    }
  })

  test('batches that come while a fold notes its target are folded whole', async () => {
    const own = await model.freshDatabases()
    const first = createIngest(model.tables, own, 'first')
    const late = createIngest(model.tables, own, 'late')
    const key = apiKeyEvent({ key: 'pv_live_late', account_id: 'a1' })
    let isDue = true
    const tables = obstructed(model.tables, {
      async before(call) {
        if (!isDue || !isOfLine(call) || !call.text.includes('.fold_progress')) return
        isDue = false
        await late([key])
      },
      async after() {},
    })
    const { foldWorker } = createTestFoldWorker(tables, own, { holder: 'tested' })
    await foldWorker.acquireLeadership()
    await first([campaignEvent({ campaign_id: 'c1' })])
    await foldWorker.fold()
    expect(isDue).toBe(false)
    expect(await foldWorker.fold()).toBeUndefined()
    const keys = await model.tables.rows({ query: `SELECT api_key FROM ${own.base}.api_keys FINAL` })
    expect(keys).toEqual([{ api_key: 'pv_live_late' }])
    await model.drop(own)
  })
})
