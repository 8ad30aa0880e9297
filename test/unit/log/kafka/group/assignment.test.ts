/**
 * What kafkajs may do between a join and the next, in orders that one broker cannot be brought to produce: with several
 * brokers a fetch of an earlier assignment can end in a later one.
 */
import pino from 'pino'
import { beforeEach, expect, test } from 'vitest'
import { type Assignments, createAssignments } from '../../../../../services/log/kafka/group/assignment.ts'
import type { TopicPartition } from '../../../../../services/log/kafka/offsets.ts'
import type { ReadMessage } from '../../../../../services/log/kafka/record.ts'
import {
  type PartitionRange,
  type PollBounds,
  partitionName,
  type Start,
} from '../../../../../services/log/port.ts'

const at = { topic: 'pledges', partition: 0 } as const
const generous: PollBounds = { recordsMax: 1_000, bytesMax: 1_000_000, waitMsMax: 0 }

let calls: string[]
let failures: Error[]
let range: PartitionRange
let begunAnew: string[]
let knowStarts: (starts: Map<string, Start>) => void
let assignments: Assignments

beforeEach(() => {
  calls = []
  failures = []
  begunAnew = []
  range = { ...at, low: 0, end: 1_000 }
  assignments = createAssignments({
    groupId: 'projector',
    member: () => ({
      start: async () => undefined,
      pause: paused => calls.push(`pause ${paused.map(partitionName)}`),
      resume: resumed => calls.push(`resume ${resumed.map(partitionName)}`),
      seek: (_at, offset) => calls.push(`seek ${offset}`),
      commit: async () => undefined,
      close: async () => undefined,
    }),
    findStarts: ({ partitions }) =>
      new Promise(resolve => {
        knowStarts = starts =>
          resolve({
            ...{ starts, ranges: rangesOf(partitions), committed: new Map(), replaced: new Map() },
            watermark: { watermark: 0, shown: 0 },
          })
      }),
    readRanges: async () => new Map([['pledges/0', range]]),
    beginAnew: (_range, reason) => void begunAnew.push(reason),
    bufferRecordsMax: 300,
    bufferBytesMax: 300_000,
    onChange: () => undefined,
    onFailure: error => failures.push(error),
    restate: async () => undefined,
    onReading: async () => undefined,
    logger: pino({ level: 'silent' }),
  })
})

test('nothing is fetched or taken before the committed offsets are known', async () => {
  assignments.onJoin('member', [at])
  expect(calls).toEqual(['pause pledges/0'])
  expect(assignments.onMessages(at, 0, messages(0, 5), 5)).toBe(false)
  await startAt(40)
  expect(calls).toEqual(['pause pledges/0', 'seek 40', 'resume pledges/0'])
  expect(assignments.onMessages(at, 40, messages(40, 5), 45)).toBe(true)
  expect(offsets()).toEqual([40, 41, 42, 43, 44])
})

test('a batch of an earlier assignment is refused, and kafkajs is sent back to the offset of the partition', async () => {
  await joinAt(40)
  expect(assignments.onMessages(at, 40, messages(40, 20), 60)).toBe(true)
  await joinAt(40)
  // It was fetched before the join, behind what was dropped with it: taken, it would leave out 40 to 59.
  expect(assignments.onMessages(at, 60, messages(60, 20), 80)).toBe(false)
  await settled()
  expect(calls.at(-1)).toBe('seek 40')
  expect(assignments.onMessages(at, 40, messages(40, 40), 80)).toBe(true)
  expect(offsets()).toEqual(Array.from({ length: 40 }, (_, index) => 40 + index))
})

test('positions that are learnt after another join change nothing', async () => {
  assignments.onJoin('member', [at])
  const knowLate = knowStarts
  assignments.onJoin('member', [])
  knowLate(new Map([['pledges/0', { next: 40, lastAt: 0 }]]))
  await settled()
  expect(calls).not.toContain('seek 40')
  expect(assignments.present().partitions.size).toBe(0)
})

test('offsets without a record move a partition and its position forward, once, if they directly follow what it has', async () => {
  await joinAt(40)
  expect(assignments.onMessages(at, 40, [], 50)).toBe(true)
  expect(assignments.take(generous)).toMatchObject({ records: [], positions: [{ ...at, next: 50 }] })
  expect(assignments.take(generous).positions).toEqual([])
  expect(assignments.onMessages(at, 50, messages(50, 1), 51)).toBe(true)
})

test('offsets without a record that were fetched before kafkajs was sent back leave out no record before them', async () => {
  await joinAt(100)
  // Two fetches of an earlier assignment, from two brokers, and then the one from where the partition is.
  expect(assignments.onMessages(at, 300, messages(300, 20), 320)).toBe(false)
  await settled()
  expect(assignments.onMessages(at, 500, [], 502)).toBe(false)
  await settled()
  expect(calls.slice(-2)).toEqual(['seek 100', 'seek 100'])
  expect(assignments.onMessages(at, 100, messages(100, 10), 110)).toBe(true)
  expect(offsets()).toEqual(Array.from({ length: 10 }, (_, index) => 100 + index))
})

test('a start whose record is compacted away, or not known, or deleted, is compared with nothing', async () => {
  assignments.onJoin('member', [at])
  await startAt(40, [at], 7_000)
  // kafkajs asks for 39, and 39 to 44 are gone.
  expect(assignments.onMessages(at, 39, messages(45, 1, 9_000), 46)).toBe(true)
  expect(offsets()).toEqual([45])
  await joinAt(40)
  expect(calls.at(-2)).toBe('seek 40')
  range = { ...at, low: 40, end: 1_000 }
  assignments.onJoin('member', [at])
  await startAt(40, [at], 7_000)
  expect(calls.at(-2)).toBe('seek 40')
  expect(begunAnew).toEqual([])
})

test('a backlog in one partition leaves the others their turn, and their topic its bound', async () => {
  const partitions = [0, 1, 2, 3].map(partition => ({ topic: 'pledges' as const, partition }))
  assignments.onJoin('member', partitions)
  await startAt(0, partitions)
  assignments.onMessages({ ...at, partition: 1 }, 0, messages(0, 30), 30)
  expect(calls.at(-1)).toBe('pause pledges/1')
  assignments.onMessages({ ...at, partition: 2 }, 0, messages(0, 70), 70)
  expect(calls.at(-1)).toBe('pause pledges/0,pledges/2,pledges/3')
  assignments.take({ ...generous, recordsMax: 50 })
  // Half is free now, but more of the last one than its share: the others come first.
  expect(calls.at(-1)).toBe('resume pledges/0,pledges/1,pledges/3')
})

async function joinAt(offset: number): Promise<void> {
  assignments.onJoin('member', [at])
  await startAt(offset)
}

async function startAt(
  offset: number,
  partitions: readonly TopicPartition[] = [at],
  lastAt = 0,
): Promise<void> {
  knowStarts(new Map(partitions.map(partition => [partitionName(partition), { next: offset, lastAt }])))
  await settled()
}

/** Lets promises that are due go on. */
function settled(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

function offsets(): number[] {
  return assignments.take(generous).records.map(({ offset }) => offset)
}

function rangesOf(partitions: ReadonlyMap<string, TopicPartition>): Map<string, PartitionRange> {
  return new Map([...partitions].map(([name, of]) => [name, { ...range, ...of }]))
}

function messages(from: number, count: number, timestamp = 0): ReadMessage[] {
  return Array.from({ length: count }, (_, index) => ({
    key: Buffer.from('k'),
    value: Buffer.from('v'),
    timestamp: String(timestamp),
    offset: String(from + index),
    headers: [],
    headerCount: 0,
  }))
}
