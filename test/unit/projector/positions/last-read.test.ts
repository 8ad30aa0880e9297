import { describe, expect, test } from 'vitest'
import { compactionWarnings } from '../../../../services/log/kafka/topic-settings.ts'
import type { PartitionLag } from '../../../../services/log/port.ts'
import {
  absenceFaults,
  checkAbsence,
  createLastRead,
} from '../../../../services/projector/positions/last-read.ts'

const hourMs = 3_600_000
const pledges = {
  topic: 'pledges',
  name: 'shop.pledges',
  policy: 'compact',
  tombstoneRetentionMs: 24 * hourMs,
  compactionLagMs: null,
} as const
const waiting: PartitionLag = { topic: 'pledges', partition: 1, committed: 5, end: 6 }
const now = 1_790_000_000_000
/** How long ago partitions were read to their end, ms. */
const faults = (agoMs: Record<string, number>, lag = [waiting]) =>
  absenceFaults(lag, [pledges], place => agoMs[place] ?? 0)

describe('projectors that were away', () => {
  test('longer than a topic keeps tombstones are refused if it has records to read', () => {
    expect(faults({ 'pledges/1': 25 * hourMs })).toEqual([
      'the projectors were away from the topic shop.pledges for 25 hours, and it keeps tombstones for only 24 hours ' +
        '(delete.retention.ms=86400000).',
    ])
    expect(faults({ 'pledges/1': 23 * hourMs })).toEqual([])
    expect(faults({ 'pledges/1': 99 * hourMs }, [{ ...waiting, committed: 6 }])).toEqual([])
  })

  test('are judged by their own partition', () => {
    expect(faults({ 'pledges/0': 30 * hourMs })).toEqual([])
  })

  test('are told how to go on', async () => {
    const inspector = {
      group: async () => ({ members: 0, remembered: { watermark: 0, shown: 0 }, lag: [waiting] }),
      compaction: async () => [pledges],
    }
    const settings = { agoMs: () => 30 * hourMs, retentionMsMin: hourMs }
    await expect(checkAbsence(inspector, settings)).rejects.toThrow(
      'Run pledgeview rebuild, and then start again',
    )
  })
})

test('a topic that keeps tombstones for too short, or deletes by age, is named with its setting', () => {
  expect(compactionWarnings([pledges], 24 * hourMs)).toEqual([])
  expect(compactionWarnings([pledges], 168 * hourMs)).toEqual([
    'the topic shop.pledges keeps tombstones for 24 hours (delete.retention.ms=86400000), less than 7 days ' +
      '(PLEDGEVIEW_KAFKA_TOMBSTONE_RETENTION_MS): a projector that is away longer needs a rebuild',
  ])
  expect(compactionWarnings([{ ...pledges, policy: 'compact,delete' }], hourMs)).toEqual([
    expect.stringContaining('cleanup.policy=compact,delete instead of compact'),
  ])
  expect(compactionWarnings([{ ...pledges, unreadable: 'not allowed' }], hourMs)).toEqual([
    expect.stringContaining('cannot be read (not allowed)'),
  ])
})

test('it is noted for the moment whose end was reached, also in a steady stream, and once per interval', async () => {
  let time = 0
  let at: PartitionLag = { topic: 'pledges', partition: 0, committed: 0, end: 10 }
  const notes: unknown[] = []
  const lastRead = createLastRead({
    lag: async () => [at],
    noteRead: async (...note) => void notes.push(note),
    onFailure: error => expect.unreachable(error.message),
    intervalMs: 60_000,
    monotonicMs: () => time,
    now: () => now + time,
  })
  async function turnAt(ms: number, committed: number): Promise<void> {
    time = ms
    at = { ...at, committed, end: committed + 10 }
    lastRead.turn()
    await lastRead.close()
  }
  await turnAt(0, 0)
  await turnAt(5_000, 9)
  expect(notes).toEqual([])
  await turnAt(8_000, 10)
  expect(notes).toEqual([[['pledges/0'], now]])
  await turnAt(60_000, 50)
  expect(notes).toHaveLength(1)
  await turnAt(68_000, 60)
  await turnAt(69_000, 70)
  expect(notes).toHaveLength(2)
})
