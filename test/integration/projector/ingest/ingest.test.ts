/** The ingest loop: records that are not events, assignments that end, and a stop. */

import { describe, expect, test, vi } from 'vitest'
import type { EventReader, NewRecord } from '../../../../services/log/port.ts'
import { qualified } from '../../../../services/tables/generations.ts'
import { TablesError } from '../../../../services/tables/port.ts'
import { obstructed } from '../../../support/clickhouse/faulty-tables.ts'
import { createMemoryLog } from '../../../support/events/memory-log.ts'
import { readModelOf } from '../../../support/events/model.ts'
import { campaignEvent, newRecordOf, noEvent, pledgeEvent } from '../../../support/events/sample-events.ts'
import { expectedReading } from '../../../support/projector/model-tables.ts'
import { keptRejects } from '../../../support/projector/reject-filters.ts'
import { recordsOf, soon, useIngest, world, worldEnds } from '../../../support/projector/use-ingest.ts'

describe('the ingest loop', () => {
  const { model, start, foldedReading } = useIngest()

  async function ledgerRows(): Promise<number[]> {
    const tables = ['campaign_ledger', 'pledge_ledger', 'api_key_ledger', 'batch_log']
    const counts = tables.map(table =>
      model.tables.rows<{ rows: number }>({
        query: `SELECT count() AS rows FROM ${qualified(table, model.databases)}`,
      }),
    )
    return (await Promise.all(counts)).map(([row]) => row?.rows ?? 0)
  }

  test('a batch of a backlog does not wait for more once the log is read to its end', async () => {
    const log = createMemoryLog()
    log.append(recordsOf(world))
    const settings = { batchMsMax: 30_000 }
    const running = start({ reader: log.reader, tables: model.tables, settings, now: () => 60_000 })
    await vi.waitFor(() => expect(running.batches).toHaveLength(1), { timeout: 20_000, interval: 20 })
    expect(running.batches[0]).toMatchObject({ records: world.length, isLogDry: true })
    await running.stop()
  })

  test('a record that is not an event goes to the dead-letter queue with its bytes and a reason, and the rest goes on', async () => {
    const log = createMemoryLog()
    const negative = newRecordOf(pledgeEvent({ campaign_id: 'a', pledge_id: 'negative', amount_minor: -1 }))
    const noKey: NewRecord = { topic: 'campaigns', key: null, value: Buffer.from('x') }
    log.append([noKey, ...recordsOf(world.slice(0, 2)), noEvent, negative, ...recordsOf(world.slice(2))])
    const running = start({ reader: log.reader, tables: model.tables })
    await vi.waitFor(() => expect(log.committed()).toMatchObject({ 'campaigns/0': 3, 'pledges/0': 4 }), soon)
    await running.stop()
    expect(await keptRejects(model.tables, model.databases)).toMatchObject([
      { record: { ...noKey, offset: 0 }, reason: expect.stringContaining('no key') },
      { record: { ...noEvent, offset: 0 }, reason: expect.stringContaining('first byte') },
      { record: { ...negative, offset: 1 }, reason: expect.stringContaining('amount_minor') },
    ])
    expect(await foldedReading()).toEqual(expectedReading(readModelOf(world)))
  })

  test('a batch is logged for the fold worker after all of its ledger rows are written, and its positions are written after that', async () => {
    const log = createMemoryLog()
    log.append(recordsOf(world))
    const rowsThen: number[][] = []
    const noteRows = async () => void rowsThen.push(await ledgerRows())
    const tables = obstructed(model.tables, {
      async before({ text }) {
        if (text.endsWith('batch_log')) await noteRows()
      },
    })
    const positions = {
      store: noteRows,
      storeRest: async () => {},
      restampBefore: () => 0,
      databasesOf: () => model.databases,
    }
    const running = start({ reader: log.reader, tables, positions })
    await vi.waitFor(() => expect(log.committed()).toEqual(worldEnds), soon)
    await running.stop()
    expect(rowsThen).toEqual([
      [2, 2, 1, 0],
      [2, 2, 1, 1],
    ])
  })

  test('a batch of nothing but rejects moves the offsets on', async () => {
    const log = createMemoryLog()
    log.append([noEvent, noEvent])
    const running = start({ reader: log.reader, tables: model.tables })
    await vi.waitFor(() => expect(log.committed()).toEqual({ 'pledges/0': 2 }), soon)
    await running.stop()
    expect(await keptRejects(model.tables, model.databases)).toHaveLength(2)
  })

  test('rejects are in their table before the batch log and the offsets move past them', async () => {
    const log = createMemoryLog()
    log.append([noEvent])
    const tables = obstructed(model.tables, {
      before({ text }) {
        if (text.endsWith('rejects')) throw new TablesError('disk full', { retryable: false })
      },
    })
    const running = start({ reader: log.reader, tables })
    await expect(running.done).rejects.toThrow('disk full')
    expect(log.commits).toEqual([])
    expect(await model.tables.rows({ query: `SELECT 1 FROM ${model.databases.ledger}.batch_log` })).toEqual(
      [],
    )
  })

  test('the circuit breaker trips at too many rejects: nothing of that batch is written or committed, and the error says why', async () => {
    const log = createMemoryLog()
    log.append(recordsOf(world))
    const running = start({
      reader: log.reader,
      tables: model.tables,
      circuitBreaker: {
        PLEDGEVIEW_REJECTS_MIN: 3,
        PLEDGEVIEW_REJECT_SHARE_MAX: 0.5,
        PLEDGEVIEW_REJECT_WINDOW_RECORDS: 4,
      },
    })
    await vi.waitFor(() => expect(log.committed()).toEqual(worldEnds), soon)
    const before = await ledgerRows()
    log.append([noEvent, noEvent, noEvent, newRecordOf(campaignEvent({ campaign_id: 'c' }))])
    await expect(running.done).rejects.toThrow(
      /^Too many of the recent records.*pledges\/0 offset 2: the first byte is 9/,
    )
    await expect(running.done).rejects.toThrow('PLEDGEVIEW_REJECT_SHARE_MAX')
    expect(log.committed()).toEqual(worldEnds)
    expect(await keptRejects(model.tables, model.databases)).toEqual([])
    expect(await ledgerRows()).toEqual(before)
  })

  test('a batch whose partitions went to another assignment commits nothing, and its records are delivered again', async () => {
    const log = createMemoryLog()
    log.append(recordsOf(world))
    let isFirst = true
    const tables = obstructed(model.tables, {
      before({ text }) {
        if (!text.endsWith('batch_log') || !isFirst) return
        isFirst = false
        log.reassign()
      },
    })
    const running = start({ reader: log.reader, tables })
    await vi.waitFor(() => expect(log.committed()).toEqual(worldEnds), soon)
    await running.stop()
    expect(log.refusedCommits()).toBe(1)
    expect(log.commits.map(({ assignment }) => assignment)).toEqual(['2'])
    expect(await foldedReading()).toEqual(expectedReading(readModelOf(world)))
  })

  test('records of two assignments never share a batch', async () => {
    const log = createMemoryLog()
    log.append(recordsOf(world.slice(0, 1)))
    let polls = 0
    const reader: EventReader = {
      ...log.reader,
      async poll(bounds, signal) {
        polls++
        if (polls === 2) {
          log.reassign()
          log.append(recordsOf(world.slice(1)))
        }
        return log.reader.poll(bounds, signal)
      },
    }
    const running = start({
      reader,
      tables: model.tables,
      settings: { batchMsMax: 60_000, batchRecordsMax: 5 },
    })
    await vi.waitFor(() => expect(log.committed()).toEqual(worldEnds), soon)
    await running.stop()
    expect(log.refusedCommits()).toBe(1)
    expect(running.batches.map(({ assignment, records }) => [assignment, records])).toEqual([
      ['1', 1],
      ['2', 5],
    ])
  })

  test('a batch is collected while another is written, but written and committed only after it', async () => {
    const log = createMemoryLog()
    log.append(recordsOf([pledgeEvent({ campaign_id: 'a', pledge_id: 'first' })]))
    const order: string[] = []
    let release = (): void => {}
    const held = new Promise<void>(resolve => {
      release = resolve
    })
    let batches = 0
    const tables = obstructed(model.tables, {
      async before({ text }) {
        if (!text.endsWith('pledge_ledger')) return
        batches++
        order.push(`write ${batches}`)
        if (batches === 1) await held
      },
    })
    const reader: EventReader = {
      ...log.reader,
      async commit(assignment, positions) {
        order.push(`commit ${positions[0]?.next}`)
        await log.reader.commit(assignment, positions)
      },
    }
    const running = start({ reader, tables, settings: { idleMsMax: 10_000 } })
    await vi.waitFor(() => expect(order).toEqual(['write 1']), soon)
    log.append(recordsOf([pledgeEvent({ campaign_id: 'a', pledge_id: 'second' })]))
    await vi.waitFor(() => expect(log.delivered()).toBe(2), soon)
    expect(order).toEqual(['write 1'])
    release()
    await vi.waitFor(() => expect(log.committed()).toEqual({ 'pledges/0': 2 }), soon)
    await running.stop()
    expect(order).toEqual(['write 1', 'commit 1', 'write 2', 'commit 2'])
  })

  test('a stop writes and commits what was collected, and reads nothing more', async () => {
    const log = createMemoryLog()
    log.append(recordsOf(world))
    const running = start({ reader: log.reader, tables: model.tables, settings: { batchMsMax: 60_000 } })
    await vi.waitFor(() => expect(log.delivered()).toBe(world.length), soon)
    expect(log.commits).toEqual([])
    await running.stop()
    expect(log.committed()).toEqual(worldEnds)
    expect(await foldedReading()).toEqual(expectedReading(readModelOf(world)))
    log.append([noEvent])
    expect(log.delivered()).toBe(world.length)
  })

  test('the position of each partition moves by itself, also over gaps without records', async () => {
    const log = createMemoryLog()
    log.append(recordsOf([campaignEvent({ campaign_id: 'a' })]), { partition: 3 })
    log.skip('campaigns', 5, 7)
    log.append(recordsOf([campaignEvent({ campaign_id: 'b' })]), { partition: 5 })
    log.skip('pledges', 1, 2)
    const running = start({ reader: log.reader, tables: model.tables })
    await vi.waitFor(
      () => expect(log.committed()).toEqual({ 'campaigns/3': 1, 'campaigns/5': 8, 'pledges/1': 2 }),
      soon,
    )
    log.skip('pledges', 1, 3)
    await vi.waitFor(() => expect(log.committed()).toMatchObject({ 'pledges/1': 5 }), soon)
    await running.stop()
  })

  test.each([
    ['microseconds taken for milliseconds', 1_790_000_000_000_000],
    ['no time at all', -1],
    ['the end of time', 8.64e15],
  ])('a log that keeps %s as the time of a record does not stop it', async (_, appendedAt) => {
    const log = createMemoryLog()
    log.append(recordsOf(world), { appendedAt })
    const running = start({ reader: log.reader, tables: model.tables })
    await vi.waitFor(() => expect(log.committed()).toEqual(worldEnds), soon)
    await running.stop()
  })
})
