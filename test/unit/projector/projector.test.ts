/** When the ingest loop ends a batch, if nothing else ends it. */
import * as fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { collectMsOf } from '../../../services/projector/projector.ts'
import type { ProjectorSettings } from '../../../services/projector/settings.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import { lostConnection } from '../../support/clickhouse/faulty-tables.ts'
import { createMemoryLog } from '../../support/events/memory-log.ts'
import { unkept } from '../../support/events/starts.ts'
import { type IngestSetup, insertsOnly, startIngest } from '../../support/projector/ingest-loop.ts'

const settings = { batchMsMin: 25, batchMsMax: 250 }

test('no record waits longer than batchMsMax, and two batches end at least that long apart or after a quiet time', () => {
  const property = fc.property(
    fc.integer({ min: 1, max: 60_000 }),
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.double({ min: 0, max: 120_000, noNaN: true }),
    (batchMsMax, share, sinceLastMs) => {
      const batchMsMin = batchMsMax * share
      const collectMs = collectMsOf({ batchMsMin, batchMsMax }, { isBacklog: false, sinceLastMs })
      expect(collectMs).toBeLessThanOrEqual(batchMsMax)
      expect(collectMs).toBeGreaterThanOrEqual(batchMsMin)
      // Rounding errors of the difference.
      expect(sinceLastMs + collectMs).toBeGreaterThanOrEqual(batchMsMax - 1e-6)
    },
  )
  fc.assert(property)
})

test('a backlog collects longer, whatever came before', () => {
  for (const sinceLastMs of [0, 250, Number.POSITIVE_INFINITY]) {
    expect(collectMsOf(settings, { isBacklog: true, sinceLastMs })).toBe(1_000)
  }
})

test('a record that comes after turns without records waits only briefly', async () => {
  const log = createMemoryLog()
  const turns = vi.fn()
  const { written, stop } = startProjector({
    log,
    settings: { idleMsMax: 10, batchMsMin: 1, batchMsMax: 3_600_000 },
    insert: async () => {},
    onTurn: turns,
  })
  await vi.waitFor(() => expect(turns.mock.calls.length).toBeGreaterThan(2), waiting)
  append(log)
  await vi.waitFor(() => expect(log.committed()).toEqual({ 'pledges/0': 1 }), waiting)
  await stop()
  expect(written).toEqual([1])
})

test('a batch that is due takes more records while the batch before it is being written', async () => {
  const log = createMemoryLog()
  let inserts = 0
  let release = (): void => {}
  const held = new Promise<void>(resolve => {
    release = resolve
  })
  const { written, stop } = startProjector({
    log,
    settings: { idleMsMax: 10_000, batchMsMax: 1 },
    insert() {
      inserts++
      return held
    },
  })
  append(log)
  await vi.waitFor(() => expect(inserts).toBe(1), waiting)
  for (let delivered = 2; delivered <= 5; delivered++) {
    append(log)
    // Each comes long after the batch is due. The fourth of the second batch fills it.
    await vi.waitFor(() => expect(log.delivered()).toBe(delivered), waiting)
  }
  append(log)
  expect(written).toEqual([])
  expect([inserts, log.commits]).toEqual([1, []])
  release()
  await vi.waitFor(() => expect(log.committed()).toEqual({ 'pledges/0': 6 }), waiting)
  await stop()
  expect(written).toEqual([1, 4, 1])
})

test('records that are old when they come share batches as others do, and none ends a backlog; a poll asks for at most 4 MiB', async () => {
  const log = createMemoryLog()
  let nowMs = 0
  let nextAt = 0
  const batches: { loggedAt: number; isEndOfBacklog: boolean }[] = []
  const { stop } = startIngest({
    reader: {
      ...log.reader,
      // One record in 50 ms.
      poll({ waitMsMax, ...bounds }, signal) {
        // Decoding what it delivers blocks the process.
        expect(bounds.bytesMax).toBe(4 * 1024 ** 2)
        nowMs = Math.max(nowMs, Math.min(nowMs + waitMsMax, nextAt))
        for (; nextAt <= nowMs; nextAt += 50) append(log, nowMs - 60_000)
        return log.reader.poll({ ...bounds, waitMsMax: 0 }, signal)
      },
    },
    tables: insertsOnly(async () => {}),
    storesRejects: false,
    decode: () => ({ reason: 'it is not an event' }),
    circuitBreaker: { PLEDGEVIEW_REJECT_SHARE_MAX: 1 },
    settings: { ...settings, idleMsMax: 500, batchBytesMax: 64 * 1024 ** 2 },
    events: { onLogged: ({ isEndOfBacklog }) => void batches.push({ loggedAt: nowMs, isEndOfBacklog }) },
    clock: { monotonicMs: () => nowMs, sleep },
    now: () => nowMs,
  })
  await vi.waitFor(() => expect(nowMs).toBeGreaterThan(10_000), waiting)
  await stop()
  // At the start, nobody knows what waits in the log.
  const later = batches.filter(({ loggedAt }) => loggedAt > 500 && loggedAt <= 10_000)
  expect(later.length).toBeGreaterThan(30)
  expect(later.length).toBeLessThan(45)
  expect(later.filter(({ isEndOfBacklog }) => isEndOfBacklog)).toEqual([])
})

const waiting = { timeout: 20_000, interval: 10 }

interface Started extends Pick<IngestSetup, 'positions'> {
  log: ReturnType<typeof createMemoryLog>
  settings: Partial<ProjectorSettings>
  insert: () => Promise<void>
  onTurn?: () => void
}

test('positions that no batch has written are written in a turn without records, and at the end; a failure is not the last try', async () => {
  for (const idleMsMax of [5, 3_600_000]) {
    const log = createMemoryLog()
    const storeRest = vi.fn(async () => {
      throw lostConnection()
    })
    const positions = { ...unkept(defaultDatabases), storeRest }
    const { stop } = startProjector({
      ...{ log, positions, settings: { idleMsMax, batchMsMax: 1 }, insert: async () => {} },
    })
    append(log)
    await vi.waitFor(() => expect(log.committed()).toEqual({ 'pledges/0': 1 }), waiting)
    const isIdle = idleMsMax < 1_000
    if (isIdle) await vi.waitFor(() => expect(storeRest.mock.calls.length).toBeGreaterThan(2), waiting)
    else expect(storeRest).not.toHaveBeenCalled()
    const before = storeRest.mock.calls.length
    await stop()
    expect(storeRest.mock.calls.length).toBeGreaterThan(before)
  }
})

/** Runs the loop on tables that only take inserts. `written`: the records of each batch, once it is in the batch log. */
function startProjector({ log, settings, insert, positions, onTurn = () => {} }: Started) {
  const written: number[] = []
  const { stop } = startIngest({
    reader: log.reader,
    tables: insertsOnly(insert),
    storesRejects: false,
    decode: () => ({ reason: 'it is not an event' }),
    ...(positions && { positions }),
    circuitBreaker: { PLEDGEVIEW_REJECT_SHARE_MAX: 1, PLEDGEVIEW_REJECTS_MIN: 1_000 },
    settings: { batchRecordsMax: 4, retryMsMax: 10_000, ...settings },
    events: { onLogged: batch => void written.push(batch.records), onTurn },
    clock: { monotonicMs: () => performance.now(), sleep },
  })
  return { written, stop }
}

function append({ append }: ReturnType<typeof createMemoryLog>, appendedAt = 1_000): void {
  append([{ topic: 'pledges', key: Buffer.from('c/p'), value: Buffer.from('x') }], { appendedAt })
}
