/** The ingest loop while ClickHouse fails: offsets move only after ClickHouse has confirmed; nothing is lost or doubled. */
import { describe, expect, test, vi } from 'vitest'
import { TablesError } from '../../../../services/tables/port.ts'
import { lostConnection, obstructed, type TablesCall } from '../../../support/clickhouse/faulty-tables.ts'
import { createMemoryLog } from '../../../support/events/memory-log.ts'
import { readModelOf } from '../../../support/events/model.ts'
import { noEvent, pledgeEvent } from '../../../support/events/sample-events.ts'
import { expectedReading } from '../../../support/projector/model-tables.ts'
import { keptRejects } from '../../../support/projector/reject-filters.ts'
import { recordsOf, soon, useIngest, world, worldEnds } from '../../../support/projector/use-ingest.ts'

describe('the ingest loop while ClickHouse fails', () => {
  const { model, start, foldedReading } = useIngest()

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

  test('a batch that cannot be written is retried with bounded backoff, and fails after the bound', async () => {
    const log = createMemoryLog()
    log.append(recordsOf(world))
    let nowMs = 0
    const waits: number[] = []
    const tables = obstructed(model.tables, {
      before({ kind }) {
        if (kind === 'insert') throw lostConnection()
      },
    })
    const running = start({
      reader: log.reader,
      tables,
      settings: { retryMsMax: 60_000, batchRecordsMax: world.length },
      clock: {
        monotonicMs: () => nowMs,
        sleep: async ms => {
          waits.push(ms)
          nowMs += ms
          if (nowMs > 600_000) throw new Error('it tries for ever')
        },
      },
    })
    await expect(running.done).rejects.toMatchObject({ name: 'TablesError', retryable: true })
    expect(Math.max(...waits)).toBeLessThanOrEqual(5_000)
    expect(waits.toSorted((a, b) => a - b)).toEqual(waits)
    expect(waits[0]).toBeGreaterThan(0)
    expect(nowMs).toBeGreaterThan(60_000)
    expect(nowMs).toBeLessThanOrEqual(65_000)
    expect(log.commits).toEqual([])
    expect(await keptRejects(model.tables, model.databases)).toEqual([])
  })

  test('a failure that is not retryable is not retried', async () => {
    const log = createMemoryLog()
    log.append(recordsOf(world))
    const tables = obstructed(model.tables, {
      before({ kind }) {
        if (kind === 'insert') throw new TablesError('no such table', { retryable: false })
      },
    })
    const running = start({ reader: log.reader, tables })
    await expect(running.done).rejects.toThrow('no such table')
    expect(running.retries).toEqual([])
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
