/**
 * What every event log promises: run on each implementation, against the real thing.
 *
 * A log may have any number of partitions a topic, so order is asserted within a partition alone.
 */
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type EventReader,
  type EventWriter,
  type FindStarts,
  type LogRecord,
  type NewRecord,
  partitionName,
  SupersededAssignment,
} from '../../../services/log/port.ts'
import {
  byText,
  byTopic,
  bytesOf,
  generous,
  lastOf,
  never,
  numbersOf,
  partitionsOf,
  plain,
  pledge,
  pledges,
  range,
  readDeliveries,
  readRecords,
  waitingByTopic,
} from '../../support/events/event-log-records.ts'

/** A fresh, empty log. */
export interface LogUnderTest {
  openWriter(): Promise<EventWriter>
  /** Default of `starts`: the start of the log, or behind what readers of the consumer have committed. */
  openReader(consumer: string, starts?: FindStarts): Promise<EventReader>
  remove(): Promise<void>
}

export function describeEventLog(name: string, open: () => Promise<LogUnderTest>): void {
  describe(`the event log ${name}`, () => {
    let log: LogUnderTest
    let closing: { close(): Promise<void> }[]

    beforeEach(async () => {
      log = await open()
      closing = []
    })

    afterEach(async () => {
      for (const part of closing) await part.close()
      await log.remove()
    })

    async function openWriter(): Promise<EventWriter> {
      return kept(await log.openWriter())
    }

    async function openReader(consumer = 'projector', starts?: FindStarts): Promise<EventReader> {
      return kept(await log.openReader(consumer, starts))
    }

    function kept<T extends { close(): Promise<void> }>(part: T): T {
      closing.push(part)
      return part
    }

    describe('delivers', () => {
      test('every record with the bytes that it was appended with', async () => {
        const writer = await openWriter()
        const records: NewRecord[] = [
          { topic: 'campaigns', key: Buffer.from('c_1'), value: randomBytes(1_000) },
          { topic: 'campaigns', key: Buffer.from([0, 0xff, 0]), value: Buffer.from([0, 1, 0, 0xfe]) },
          { topic: 'campaigns', key: Buffer.from('tombstone'), value: null },
          { topic: 'campaigns', key: Buffer.from('empty'), value: new Uint8Array(0) },
          { topic: 'campaigns', key: null, value: Buffer.from('no key') },
          { topic: 'campaigns', key: null, value: null },
          { topic: 'pledges', key: Buffer.from('c_1/p_1'), value: randomBytes(300_000) },
          { topic: 'api-keys', key: Buffer.from('pv_live_1'), value: Buffer.from('key') },
        ]
        await writer.append(records)
        const delivered = await readRecords(await openReader(), records.length)
        expect(delivered.map(plain).sort(byText)).toEqual(records.map(plain).sort(byText))
      })

      test('the records of a partition in the order of their offsets, each once, none left out', async () => {
        const writer = await openWriter()
        for (let batch = 0; batch < 20; batch++) await writer.append(pledges(batch * 50, 50))
        const delivered = await readRecords(await openReader(), 1_000, { ...generous, recordsMax: 70 })
        expect(numbersOf(delivered).toSorted((a, b) => a - b)).toEqual(range(0, 1_000))
        for (const partition of partitionsOf(delivered)) {
          const offsets = partition.map(({ offset }) => offset)
          expect(offsets).toEqual([...new Set(offsets)].toSorted((a, b) => a - b))
          // One writer and one key: appended in this order, so delivered in it.
          expect(numbersOf(partition)).toEqual(numbersOf(partition).toSorted((a, b) => a - b))
        }
      })

      test('with positions that stand right after what was delivered', async () => {
        const writer = await openWriter()
        await writer.append([...pledges(0, 30), { topic: 'campaigns', key: Buffer.from('c'), value: null }])
        const deliveries = await readDeliveries(await openReader(), 31, { ...generous, recordsMax: 8 })
        for (const { records, positions } of deliveries) {
          const after = partitionsOf(records).map(partition => {
            const { topic, partition: number, offset, appendedAt } = lastOf(partition)
            return { topic, partition: number, next: offset + 1, lastAt: appendedAt }
          })
          expect(positions.toSorted(byTopic)).toEqual(after.toSorted(byTopic))
        }
      })

      test('no more than the bounds of a poll, but for a record that is larger alone, and everything in the end', async () => {
        const writer = await openWriter()
        await writer.append(Array.from({ length: 299 }, (_, i) => pledge(i, Buffer.alloc(100 + i))))
        await writer.append([pledge(299, Buffer.alloc(50_000))])
        const bounds = { ...generous, recordsMax: 37, bytesMax: 5_000 }
        const deliveries = await readDeliveries(await openReader(), 300, bounds)
        for (const { records } of deliveries) {
          expect(records.length).toBeLessThanOrEqual(37)
          if (records.length > 1) expect(bytesOf(records)).toBeLessThanOrEqual(5_000)
        }
        expect(deliveries.flatMap(({ records }) => records)).toHaveLength(300)
      })

      test('at once what is appended while it waits', async () => {
        const [reader, writer] = [await openReader(), await openWriter()]
        await reader.poll({ ...generous, waitMsMax: 0 }, never)
        const waiting = readRecords(reader, 1, { ...generous, waitMsMax: 50_000 })
        await writer.append([pledge(5)])
        expect(numbersOf(await waiting)).toEqual([5])
      })

      test('nothing, at once, when the wait is aborted', async () => {
        const reader = await openReader()
        const abort = new AbortController()
        const waiting = reader.poll({ ...generous, waitMsMax: 10 * 60_000 }, abort.signal)
        abort.abort()
        expect((await waiting).records).toEqual([])
        expect((await reader.poll({ ...generous, waitMsMax: 10 * 60_000 }, abort.signal)).records).toEqual([])
      })
    })

    describe('begins where it is told', () => {
      const known = (next: number, { topic, partition, appendedAt }: LogRecord): FindStarts => ({
        find: async () => new Map([[partitionName({ topic, partition }), { next, lastAt: appendedAt }]]),
        beginAnew: (_range, reason) => void begunAnew.push(reason),
      })
      let begunAnew: string[]

      beforeEach(() => {
        begunAnew = []
      })

      test('whatever is committed, and commits what it has done from there', async () => {
        await (await openWriter()).append(pledges(0, 30))
        const first = await openReader()
        const deliveries = await readDeliveries(first, 30)
        for (const { assignment, positions } of deliveries) await first.commit(assignment, positions)
        await first.close()
        const second = lastOf(deliveries.flatMap(({ records }) => records).slice(0, 2))
        const reader = await openReader('projector', known(second.offset + 1, second))
        expect(await waitingByTopic(reader)).toMatchObject({ pledges: 28 })
        const again = await readDeliveries(reader, 28)
        expect(numbersOf(again.flatMap(({ records }) => records))).toEqual(range(2, 30))
        for (const { assignment, positions } of again) await reader.commit(assignment, positions)
        expect(await waitingByTopic(reader)).toMatchObject({ pledges: 0 })
        expect(begunAnew).toEqual([])
      })

      test('and after a restart where it is told then, under another assignment', async () => {
        await (await openWriter()).append(pledges(0, 30))
        const all = await readRecords(await openReader('another'), 30)
        const readUpTo = (count: number): FindStarts =>
          known((all[count - 1]?.offset ?? 0) + 1, all[count - 1] as LogRecord)
        let starts = readUpTo(20)
        const reader = await openReader('projector', { ...starts, find: state => starts.find(state) })
        const [before] = await readDeliveries(reader, 1, { ...generous, recordsMax: 5 })
        if (!before) throw new Error('nothing came')
        expect(numbersOf(before.records)).toEqual(range(20, 25))
        starts = readUpTo(10)
        await reader.restart()
        expect(numbersOf(await readRecords(reader, 20))).toEqual(range(10, 30))
        await expect(reader.commit(before.assignment, before.positions)).rejects.toThrow(SupersededAssignment)
      })

      test('unless another record is there: then at the start', async () => {
        await (await openWriter()).append(pledges(0, 30))
        const second = lastOf((await readRecords(await openReader('another'), 30)).slice(0, 2))
        const other = { ...second, appendedAt: second.appendedAt - 1 }
        const reader = await openReader('projector', known(second.offset + 1, other))
        expect(numbersOf(await readRecords(reader, 30))).toEqual(range(0, 30))
        expect(begunAnew).toEqual([`the record at ${second.offset} is not the one that was read`])
      })
    })

    describe('remembers a watermark', () => {
      const campaigns = (from: number, count: number): NewRecord[] =>
        range(from, from + count).map(n => ({ topic: 'campaigns', key: Buffer.from(`c_${n}`), value: null }))

      test('before any record has come, moves no position with it, and never remembers a lower one, whichever reader comes', async () => {
        const writer = await openWriter()
        const first = await openReader()
        expect(first.leads()).toBe(true)
        expect(await first.rememberWatermark(0)).toBe(0)
        expect(await first.rememberWatermark(7_000)).toBe(7_000)
        await first.close()

        await writer.append(campaigns(0, 30))
        const second = await openReader()
        expect(await second.rememberWatermark(6_000)).toBe(7_000)
        for (const { assignment, positions } of await readDeliveries(second, 30)) {
          await second.commit(assignment, positions)
        }
        expect(Object.values(await waitingByTopic(second))).toEqual([0, 0, 0, 0, 0])
        await second.close()

        const third = await openReader()
        expect(await third.rememberWatermark(0)).toBe(7_000)
        expect(await third.rememberWatermark(8_000)).toBe(8_000)
      })

      test('beside commits that run at the same time, and takes none of them back', async () => {
        const writer = await openWriter()
        await writer.append(campaigns(0, 90))
        const reader = await openReader()
        const deliveries = await readDeliveries(reader, 90, { ...generous, recordsMax: 10 })
        await Promise.all(
          deliveries.flatMap(({ assignment, positions }, n) => [
            reader.commit(assignment, positions),
            reader.rememberWatermark(1_000 + n),
          ]),
        )
        expect(await waitingByTopic(reader)).toMatchObject({ campaigns: 0 })
        await reader.close()
        expect(await (await openReader()).rememberWatermark(0)).toBe(999 + deliveries.length)
      })
    })

    test('keeps everything of several writers that append while another reads', async () => {
      const reader = await openReader()
      const writers = { a: await openWriter(), b: await openWriter() }
      const appended = Object.entries(writers).map(async ([name, writer]) => {
        for (let batch = 0; batch < 60; batch++) {
          const records = pledges(25 * batch, 25)
          await writer.append(records.map(record => ({ ...record, key: Buffer.from(name) })))
        }
      })
      const delivered = await readRecords(reader, 3_000, { ...generous, recordsMax: 200 })
      await Promise.all(appended)
      for (const name of Object.keys(writers)) {
        const own = delivered.filter(({ key }) => key !== null && Buffer.from(key).toString() === name)
        expect(numbersOf(own)).toEqual(range(0, 1_500))
      }
      expect((await reader.poll({ ...generous, waitMsMax: 0 }, never)).records).toEqual([])
    })
  })
}
