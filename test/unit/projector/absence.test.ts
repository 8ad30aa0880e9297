import { describe, expect, test } from 'vitest'
import { absenceFaults, checkAbsence, type LastPresence } from '../../../services/projector/absence.ts'
import { createPresence } from '../../../services/projector/presence.ts'
import type { ProjectorNote } from '../../../services/projector/projector-log.ts'
import { compactionWarnings } from '../../../services/shared/event-log/kafka/compaction.ts'
import type { PartitionLag } from '../../../services/shared/event-log/port.ts'
import type { Tables } from '../../../services/shared/tables/port.ts'

const hourMs = 3_600_000
const pledges = {
  topic: 'pledges',
  name: 'shop.pledges',
  policy: 'compact',
  tombstoneRetentionMs: 24 * hourMs,
} as const
const waiting: PartitionLag = { topic: 'pledges', partition: 1, committed: 5, end: 6 }
const known: LastPresence = { isNoted: true, msAgo: {}, lastBatchMsAgo: null, isFilled: true }
const faults = (last: Partial<LastPresence>, lag = [waiting]) =>
  absenceFaults({ lag, topics: [pledges], last: { ...known, ...last } })

describe('projectors that were away', () => {
  test('longer than a topic keeps tombstones are refused if it has records to read', () => {
    expect(faults({ msAgo: { 'pledges/1': 25 * hourMs } })).toEqual([
      'the projectors were away from the topic shop.pledges for 25 hours, and it keeps tombstones for only 24 hours ' +
        '(delete.retention.ms=86400000).',
    ])
    expect(faults({ msAgo: { 'pledges/1': 23 * hourMs } })).toEqual([])
    const nothing = [{ ...waiting, committed: 6 }]
    expect(faults({ msAgo: { 'pledges/1': 99 * hourMs } }, nothing)).toEqual([])
  })

  test('are judged by their own partition, and without a note by the last batch', () => {
    expect(faults({ msAgo: { 'pledges/0': hourMs }, lastBatchMsAgo: 30 * hourMs })).toHaveLength(1)
    expect(faults({ msAgo: { 'pledges/1': hourMs }, lastBatchMsAgo: 30 * hourMs })).toEqual([])
    expect(faults({ lastBatchMsAgo: hourMs })).toEqual([])
  })

  test('are refused if it is not known how long, unless the tables are empty', () => {
    expect(faults({})).toEqual([expect.stringContaining('an unknown time')])
    expect(faults({ isFilled: false })).toEqual([])
  })
})

describe('the start of a projector after a long time without batches', () => {
  const settings = { databases: { model: 'm', views: 'v' }, retentionMsMin: hourMs }
  const inspector = { group: async () => ({ members: 0, lag: [waiting] }), compaction: async () => [pledges] }
  /** Filled tables whose last batch and note are 30 hours old. */
  const tablesWith = (notes: string[]) =>
    ({
      rows: async <Row>({ query }: { query: string }) =>
        (query.includes('projector_log')
          ? notes.map(place => ({ place, msAgo: 30 * hourMs }))
          : [{ batches: 5, msAgo: 30 * hourMs, filled: 1 }]) as Row[],
    }) as Partial<Tables> as Tables

  test('goes on with a warning if no projector has noted its presence yet: an earlier version did not', async () => {
    const { warnings } = await checkAbsence(inspector, { ...settings, tables: tablesWith([]) })
    expect(warnings).toEqual([expect.stringContaining('away from the topic shop.pledges for 30 hours')])
    expect(warnings[0]).toContain('rebuild the tables')
  })

  test('is refused from the first note on, and the way on is one that lifts the refusal', async () => {
    const asked = { ...settings, tables: tablesWith(['pledges/1']) }
    await expect(checkAbsence(inspector, asked)).rejects.toThrow('Run pledgeview rebuild without --from-file')
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

test('presence is noted for the moment whose end was reached, also in a steady stream, and once per interval', async () => {
  let now = 0
  let at: PartitionLag = { topic: 'pledges', partition: 0, committed: 0, end: 10 }
  const notes: ProjectorNote[] = []
  const presence = createPresence({
    lag: async () => [at],
    write: async note => void notes.push(note),
    onFailure: error => expect.unreachable(error.message),
    group: 'g',
    intervalMs: 60_000,
    monotonicMs: () => now,
  })
  async function turnAt(time: number, committed: number): Promise<void> {
    now = time
    at = { ...at, committed, end: committed + 10 }
    presence.turn()
    await presence.close()
  }
  await turnAt(0, 0)
  await turnAt(5_000, 9)
  expect(notes).toEqual([])
  await turnAt(8_000, 10)
  const positions = [{ topic: 'pledges', partition: 0, next: 10 }]
  expect(notes).toEqual([
    { kind: 'present', detail: { partitions: ['pledges/0'], msAgo: 8_000, positions, group: 'g' } },
  ])
  await turnAt(60_000, 50)
  expect(notes).toHaveLength(1)
  await turnAt(68_000, 60)
  await turnAt(69_000, 70)
  expect(notes).toHaveLength(2)
})
