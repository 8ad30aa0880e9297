/** When the positions are written. What they mean is shown in the integration suite of the same name. */
import { expect, test } from 'vitest'
import {
  createPositions,
  readPositions,
  readUntilOfNew,
} from '../../../../services/projector/positions/positions.ts'
import { noticeRestore } from '../../../../services/projector/positions/restore.ts'
import { generationOf } from '../../../../services/tables/generation-log.ts'
import { decodeRows } from '../../../support/clickhouse/row-binary.ts'

const databases = generationOf({ base: 'base', views: 'views' }, 1)
const partition = { topic: 'pledges', partition: 0 } as const

const notice: Parameters<typeof createPositions>[0]['notice'] = async ({ shards }, { log }) => ({
  stored: await readPositions(shards, log),
})

/** Positions whose clock stands still, and the offsets that they have written. */
async function openPositions() {
  const written: unknown[] = []
  const tables = {
    rows: async () => [],
    ...{ run: async () => {}, close: async () => {} },
    async insert(insert: Parameters<typeof decodeRows>[0]) {
      written.push(...decodeRows(insert).map(({ next }) => Number(next)))
    },
  }
  const positions = createPositions({
    ...{ databases, shards: [{ tables, databases }], notice },
    now: () => 1_790_000_000_000,
    monotonicMs: () => 0,
    warn: () => {},
  })
  const assign = (assignment: string) =>
    positions.find({
      ...{ log: '', assignment, remembered: { watermark: 0, shown: 0 } },
      partitions: [{ ...partition, low: 0, end: 100 }],
    })
  await assign('first')
  const store = (next: number, assignment = 'first') =>
    positions.store(assignment, [{ ...partition, next, lastAt: 1 }])
  return { positions, written, assign, store }
}

test('what an assignment has left unwritten goes with it: another process may have the partitions', async () => {
  const { positions, written, assign, store } = await openPositions()
  await store(1)
  await store(2)
  await assign('second')
  await positions.storeRest()
  await store(3)
  expect(written).toEqual([1])
  await store(1, 'second')
  await positions.storeRest()
  expect(written).toEqual([1, 1])
})

test('behind markers of transactions alone a position stays: nothing would tell a log that is made again with as many records', async () => {
  const { positions, written } = await openPositions()
  await positions.store('first', [{ ...partition, next: 6 }])
  await positions.storeRest()
  expect(written).toEqual([])
  await positions.store('first', [{ ...partition, next: 7, lastAt: 1_700_000_000_000 }])
  await positions.store('first', [{ ...partition, next: 9 }])
  await positions.storeRest()
  expect(written).toEqual([7, 9])
})

test('a partition that the log has no more does not count as unread, neither for a new partition nor for another log', async () => {
  const longAgo = 1_000
  const now = 1_790_000_000_000
  const other = { era: 0, next: 7, lastAt: 0, againUntil: 0, lostWatermark: 0, readUntil: longAgo }
  const stored = new Map(
    [0, 1].map(number => [number, { log: 'one', topic: 'pledges', partition: number, ...other }]),
  )
  const tables = {
    rows: async ({ query }: { query: string }) =>
      (query.includes('.positions') ? [...stored.values()] : []) as never,
    ...{ run: async () => {}, close: async () => {} },
    async insert(insert: Parameters<typeof decodeRows>[0]) {
      for (const { partition: number, read_until } of decodeRows(insert)) {
        const row = stored.get(Number(number))
        if (row) row.readUntil = Number(read_until)
      }
    },
  }
  const shards = [{ tables, databases }]
  const positions = createPositions({ databases, shards, notice, now: () => now, warn: () => {} })
  await positions.find({
    ...{ log: 'one', assignment: 'first', remembered: { watermark: 0, shown: 0 } },
    partitions: [{ ...partition, low: 0, end: 7 }],
  })
  await positions.noteRead(['pledges/0'], now)
  for (const log of ['one', 'another'])
    expect(readUntilOfNew(await readPositions(shards, log), now + 1)).toBe(now)
})

test('the watermark is read before the positions: between them, another projector may have begun again and raised it', async () => {
  const asked: string[] = []
  const tables = {
    async rows({ query }: { query: string }) {
      asked.push(query.includes('.watermark') ? 'watermark' : 'positions')
      return []
    },
    ...{ run: async () => {}, insert: async () => {}, close: async () => {} },
  }
  const place = { tables, databases, shards: [{ tables, databases }], now: () => 0, warn: () => {} }
  const remembered = { watermark: 1, shown: 1 }
  await noticeRestore(place, { log: '', remembered, partitions: [{ ...partition, low: 0, end: 1 }] })
  expect(asked).toEqual(['watermark', 'positions'])
})
