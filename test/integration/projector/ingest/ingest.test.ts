/**
 * The ingest loop: records that are not events, assignments that end, a stop, and a ClickHouse that fails. Offsets move only after
 * ClickHouse has confirmed; nothing is lost or doubled.
 */

import { describe, expect, test, vi } from 'vitest'
import type { EventReader } from '../../../../services/log/port.ts'
import { qualified } from '../../../../services/tables/generation-log.ts'
import { TablesError } from '../../../../services/tables/port.ts'
import { lostConnection, obstructed, type TablesCall } from '../../../support/clickhouse/faulty-tables.ts'
import { createMemoryLog } from '../../../support/events/memory-log.ts'
import { readModelOf } from '../../../support/events/model.ts'
import { campaignEvent, noEvent, pledgeEvent } from '../../../support/events/sample-events.ts'
import { unkept } from '../../../support/events/starts.ts'
import { recordsOf, soon, useIngest, world, worldEnds } from '../../../support/projector/ingest-loop.ts'
import { expectedReading } from '../../../support/projector/model-tables.ts'
import { keptRejects } from '../../../support/projector/reject-filters.ts'

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
    const positions = { ...unkept(model.databases), store: noteRows }
    const running = start({ reader: log.reader, tables, positions })
    await vi.waitFor(() => expect(log.committed()).toEqual(worldEnds), soon)
    await running.stop()
    expect(rowsThen).toEqual([
      [2, 2, 1, 0],
      [2, 2, 1, 1],
    ])
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

  const failures = ['campaign_ledger', 'pledge_ledger', 'api_key_ledger', 'rejects', 'batch_log'].flatMap(
    table => (['before', 'after'] as const).map(side => [table, side] as const),
  )

  test.each(failures)(
    'while %s fails (%s it ran), no offset moves; then nothing is lost or doubled',
    async (table, side) => {
      const log = createMemoryLog()
      let failuresLeft = 3
      const committedMeanwhile: unknown[] = []
      const tables = obstructed(model.tables, {
        [side]: ({ kind, text }: TablesCall) => {
          if (kind !== 'insert' || !text.endsWith(table) || failuresLeft-- <= 0) return
          committedMeanwhile.push(log.committed())
          throw lostConnection()
        },
      })
      log.append([...recordsOf(world), noEvent])
      const running = start({ reader: log.reader, tables })
      await vi.waitFor(() => expect(log.committed()).toEqual({ ...worldEnds, 'pledges/0': 3 }), soon)
      await running.stop()
      const nothing = { 'campaigns/0': 0, 'pledges/0': 0, 'api-keys/0': 0 }
      expect(committedMeanwhile).toEqual([nothing, nothing, nothing])
      expect(running.retries).toHaveLength(3)
      expect(await keptRejects(model.tables, model.databases)).toHaveLength(1)
      expect(await foldedReading()).toEqual(expectedReading(readModelOf(world)))
    },
  )

  test.each([
    ['that may pass is tried again until the bound', true],
    ['that is not retryable is not tried again', false],
  ])('a failure %s, and nothing is committed', async (_, retryable) => {
    const log = createMemoryLog()
    log.append(recordsOf(world))
    let nowMs = 0
    const tables = obstructed(model.tables, {
      before({ kind }) {
        if (kind === 'insert') throw new TablesError('away', { retryable })
      },
    })
    const clock = {
      monotonicMs: () => nowMs,
      async sleep(ms: number) {
        nowMs += ms
        if (nowMs > 600_000) throw new Error('it tries for ever')
      },
    }
    const settings = { retryMsMax: 60_000, batchRecordsMax: world.length }
    const running = start({ reader: log.reader, tables, settings, clock })
    await expect(running.done).rejects.toMatchObject({ name: 'TablesError', retryable })
    // No pause is longer than five seconds.
    expect(nowMs > 60_000 && nowMs <= 65_000).toBe(retryable)
    expect(running.retries.length > 0).toBe(retryable)
    expect(log.commits).toEqual([])
  })

  test('while a batch cannot be written, at most one more is taken from the log', async () => {
    const log = createMemoryLog()
    const pledges = Array.from({ length: 100 }, (_, n) =>
      pledgeEvent({ campaign_id: 'a', pledge_id: `p${n}` }),
    )
    log.append(recordsOf(pledges))
    let isAway = true
    const tables = obstructed(model.tables, {
      before({ kind }) {
        if (kind === 'insert' && isAway) throw lostConnection()
      },
    })
    const running = start({ reader: log.reader, tables, settings: { batchRecordsMax: 10 } })
    await vi.waitFor(() => expect(running.retries.length).toBeGreaterThan(3), soon)
    expect(log.delivered()).toBe(20)
    isAway = false
    await vi.waitFor(() => expect(log.committed()).toEqual({ 'pledges/0': 100 }), soon)
    await running.stop()
    expect(log.delivered()).toBe(100)
  })

  test('an outage delays a stop by no more than one attempt, and commits nothing', async () => {
    const log = createMemoryLog()
    log.append(recordsOf(world))
    const tables = obstructed(model.tables, {
      before({ kind }) {
        if (kind === 'insert') throw lostConnection()
      },
    })
    const running = start({ reader: log.reader, tables })
    await vi.waitFor(() => expect(running.retries.length).toBeGreaterThan(0), soon)
    await expect(running.stop()).rejects.toThrow('lost')
    expect(log.commits).toEqual([])
  })
})
