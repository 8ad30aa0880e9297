/** Two partitions, their projectors and their tables: the model on which the guard against a restored backup is shown. */
import fc from 'fast-check'
import { behindOf, believedOf, type Claim } from '../../services/projector/recorded-positions.ts'
import { lostFault, startOf } from '../../services/shared/event-log/kafka/offsets.ts'
import { recordedOf } from './recorded-claims.ts'

const places = ['pledges/0', 'pledges/1'] as const
type Place = (typeof places)[number]

export type GuardStep =
  | { kind: 'append'; place: Place; records: number }
  | { kind: 'batch'; place: Place; records: number }
  /** The ledger rows of a batch are in, and its projector is killed before the batch log has it. */
  | { kind: 'kill'; place: Place; records: number }
  | { kind: 'commit'; place: Place }
  /** The log deletes its first records, if the tables have recorded them. */
  | { kind: 'delete'; place: Place; records: number }
  | { kind: 'otherGroup'; place: Place; records: number }
  /** Partitions are assigned anew: after a kill, or because another projector joins or leaves. */
  | { kind: 'rebalance' }
  /** The projectors run. */
  | { kind: 'hours'; hours: number }
  /** They do not. */
  | { kind: 'away'; hours: number }
  /** The batch log deletes what is old. */
  | { kind: 'forget' }

const batchHours = 30 * 24
const stepsMax = 60

function stepsOf({ awayHoursMax }: { awayHoursMax: number }): fc.Arbitrary<GuardStep[]> {
  const place = fc.constantFrom(...places)
  const withRecords = fc.constantFrom(...(['append', 'batch', 'kill', 'delete', 'otherGroup'] as const))
  const kinds: fc.MaybeWeightedArbitrary<GuardStep>[] = [
    { weight: 5, arbitrary: fc.record({ kind: withRecords, place, records: fc.nat(50) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('commit' as const), place }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('rebalance' as const, 'forget' as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('hours' as const),
        hours: fc.integer({ min: 1, max: 1_000 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('away' as const),
        hours: fc.integer({ min: 1, max: awayHoursMax }),
      }),
    },
  ]
  return fc.array(fc.oneof(...kinds), { maxLength: stepsMax })
}

/** In these, the projectors may be away for months. */
export const guardSteps = stepsOf({ awayHoursMax: 1_000 })
/** In these, for less time than the batch log remembers. */
export const quickSteps = stepsOf({ awayHoursMax: Math.floor(batchHours / stepsMax) - 1 })

interface Partition {
  low: number
  end: number
  /** Where new tables began. */
  first: number
  committed: number | undefined
  /** How far its projector has read. */
  read: number
  held: number
  others: number
}

interface TablesState {
  batches: Claim[]
  notes: Claim[]
  /** Whether it is noted with what the tables began. */
  hasBegun: boolean
  /** The records that the ledgers have, as `place/offset`. */
  has: Set<string>
}

const newTables = (): TablesState => ({ batches: [], notes: [], hasBegun: false, has: new Set() })
const copyOf = ({ batches, notes, hasBegun, has }: TablesState): TablesState => ({
  batches: [...batches],
  notes: [...notes],
  hasBegun,
  has: new Set(has),
})

/** `isOld`: the projectors are of a version that notes no positions and does not look. */
export function createGuardWorld({ isOld = false } = {}) {
  let hour = 0
  let looks = !isOld
  let tables = newTables()
  const log = new Map<Place, Partition>(
    places.map(place => [
      place,
      { low: 0, end: 0, first: 0, committed: undefined, read: 0, held: 0, others: 0 },
    ]),
  )
  const at = (place: Place) => log.get(place) as Partition
  const isFilled = () => tables.has.size > 0
  const isIn = (place: Place, offset: number) => tables.has.has(`${place}/${offset}`)

  function committed(): Map<string, number> {
    return new Map(
      [...log].flatMap(([place, { committed = 0 }]) => (committed > 0 ? [[place, committed]] : [])),
    )
  }

  function claimedOf(place: string): number {
    return recordedOf([...tables.batches, ...tables.notes]).get(place)?.recorded ?? 0
  }

  /** As `noteBeginning`, and then where each partition begins. */
  function starts(): { at: number; fault: string | undefined }[] {
    if (!looks) return healthyStarts()
    if (!tables.hasBegun) {
      const claimed = new Map(tables.batches.map(({ place }) => [place, claimedOf(place)]))
      for (const [place, next] of believedOf(committed(), claimed, isFilled())) {
        tables.notes.push({ place, next, hour })
      }
      tables.hasBegun = true
    }
    const recorded = recordedOf([...tables.batches, ...tables.notes])
    const behind = behindOf(committed(), recorded, { isFilled: isFilled(), hasBegun: tables.hasBegun })
    return [...log].map(([place, partition]) => ({
      at: startOf(partition.committed, partition, behind.get(place)),
      fault: lostFault(partition.committed, partition, behind.get(place)),
    }))
  }

  function healthyStarts(): { at: number; fault: string | undefined }[] {
    return [...log.values()].map(({ committed, low }) => ({ at: committed ?? low, fault: undefined }))
  }

  function assign(): void {
    for (const [index, start] of starts().entries()) {
      const partition = at(places[index] as Place)
      partition.read = start.at
      partition.held = start.at
    }
  }

  function take(place: Place, from: number, records: number): number {
    const begin = Math.max(from, at(place).low)
    const to = Math.min(at(place).end, begin + records)
    for (let offset = begin; offset < to; offset++) tables.has.add(`${place}/${offset}`)
    return to
  }

  function batch(place: Place, from: number, records: number): number {
    const to = take(place, from, records)
    if (to > from) tables.batches.push({ place, next: to, hour })
    return to
  }

  /** A commit never moves back what its projector began with, but it may move the group back. */
  function commit(partition: Partition): void {
    if (partition.read <= partition.held) return
    partition.committed = partition.read
    partition.held = partition.read
  }

  function run(hours: number): void {
    for (const [place, partition] of log) {
      partition.read = batch(place, partition.read, partition.end)
      commit(partition)
      for (let at = hour; at < hour + hours && looks; at++) {
        tables.notes.push({ place, next: partition.held, hour: at })
      }
    }
    hour += hours
  }

  function deleteFirst(place: Place, records: number): void {
    const partition = at(place)
    const until = Math.min(partition.low + records, claimedOf(place), partition.committed ?? 0)
    partition.low = Math.max(partition.low, until)
  }

  assign()
  return {
    places,
    do(step: GuardStep): void {
      if (step.kind === 'append') at(step.place).end += step.records
      if (step.kind === 'batch') at(step.place).read = batch(step.place, at(step.place).read, step.records)
      if (step.kind === 'kill') take(step.place, at(step.place).read, step.records)
      if (step.kind === 'kill' || step.kind === 'rebalance') assign()
      if (step.kind === 'commit') commit(at(step.place))
      if (step.kind === 'delete') deleteFirst(step.place, step.records)
      if (step.kind === 'otherGroup') {
        at(step.place).others = batch(step.place, at(step.place).others, step.records)
      }
      if (step.kind === 'away') hour += step.hours
      if (step.kind === 'hours') run(step.hours)
      if (step.kind === 'forget') {
        tables.batches = tables.batches.filter(claim => claim.hour > hour - batchHours)
      }
    },
    backup: () => copyOf(tables),
    restore(backup: TablesState): void {
      tables = copyOf(backup)
      // Projectors begin by asking the group where they are.
      assign()
    },
    /** The tables are lost, and there is no backup. */
    renew(): void {
      tables = newTables()
      for (const partition of log.values()) {
        partition.first = partition.low
        partition.others = partition.low
      }
      assign()
    },
    upgrade(): void {
      looks = true
      assign()
    },
    isFilled,
    starts,
    healthyStarts,
    faults: () => starts().flatMap(({ fault }) => fault ?? []),
    readRest(): void {
      assign()
      for (const [place, partition] of log) partition.read = batch(place, partition.read, partition.end)
    },
    /** What the log had since the tables began, and the tables do not have. */
    missing(): string[] {
      return [...log].flatMap(([place, { first, end }]) =>
        Array.from({ length: end - first }, (_, index) => first + index)
          .filter(offset => !isIn(place, offset))
          .map(offset => `${place}/${offset}`),
      )
    },
  }
}
