/**
 * Two mistakes of a producer that change nothing in the outcome, and that it should learn of: an event whose version is lower than one
 * that came before (stale), and an event that has the version of another state (conflicting: the last one that is read wins).
 *
 * The ingest looks up nothing. Beside it, the last events of a batch are compared with the ledger's rows of the same keys: all events of a
 * small batch, a sample of a large one, and for at most a hundredth of the time. All records of a key are in one partition, so what the
 * ledger has came before. The question is asked when the batch begins to be written. An answer that comes after the next one began does
 * not count, because that one may be in it. So no event counts that is in order, except for those that are read again: after a kill,
 * or under a new assignment.
 *
 * How it fails: what cannot be compared does not count. It never throws, and nothing waits for it.
 */
import { hash } from 'node:crypto'
import { type ChangeEvent, type Topic, topicOf } from '../../../contracts/events/event.ts'
import { ledgerColumns } from '../../../contracts/tables/campaign-columns.ts'
import type { LogRecord } from '../../log/port.ts'
import { createEncodedRowWriter, encodeRows, type TableColumn } from '../../tables/clickhouse/row-binary.ts'
import { ledgerRows } from '../../tables/ledger-versions.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { placeName } from '../../tables/rejects.ts'
import type { HashBacker } from '../ingest/backer-hash.ts'
import type { Decode } from '../ingest/decode.ts'
import {
  apiKeyColumns,
  apiKeyRow,
  campaignRow,
  pledgeColumns,
  pledgeEncoder,
  tombstoneVersion,
  versionOf,
} from '../ingest/ledger-rows.ts'
import type { ProducerFault } from '../projector-log.ts'
import { examplesMax } from './fault-report.ts'

export const outcomes = ['in_order', 'stale', 'conflicting'] as const
export type Outcome = (typeof outcomes)[number]

/** Of one topic. */
export interface ComparedVersions {
  topic: Topic
  counts: Record<Outcome, number>
  /** The first stale and conflicting records, as `outcome topic/partition/offset`. */
  examples: string[]
}

export interface VersionCheckDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  decode: Decode
  hashBacker: HashBacker
  onCompared: (found: ComparedVersions) => void
  onError: (error: Error) => void
  monotonicMs: () => number
}

// A comparison of this length is followed by a rest that is so many times as long.
const restFactor = 99

export function createVersionCheck(dependencies: VersionCheckDependencies) {
  const { decode, onCompared, onError, monotonicMs } = dependencies
  let batches = 0
  let nextAt = Number.NEGATIVE_INFINITY
  let comparing: Promise<void> | undefined

  async function compareAll(records: readonly LogRecord[]): Promise<void> {
    const [startedAt, batch] = [monotonicMs(), batches]
    const events = records.flatMap(record => {
      const event = decode(record)
      return 'key' in event ? [{ record, event }] : []
    })
    try {
      const types = [...Map.groupBy(events, ({ event }) => event.type)]
      const found = await Promise.all(types.map(([type, ofType]) => compare(dependencies, type, ofType)))
      if (batches === batch) for (const one of found) onCompared(one)
    } catch (error) {
      onError(error as Error)
    }
    const endedAt = monotonicMs()
    nextAt = endedAt + restFactor * (endedAt - startedAt)
  }

  return {
    /** A batch is written next. `last`: its last records, in their order. */
    next(last: readonly LogRecord[]): void {
      batches++
      if (comparing || last.length === 0 || monotonicMs() < nextAt) return
      comparing = compareAll(last).finally(() => {
        comparing = undefined
      })
    },
    /** Waits for the comparison that is under way. */
    close: async () => comparing,
  }
}

export function versionFault({ topic, counts, examples }: ComparedVersions): ProducerFault {
  const { stale, conflicting } = counts
  return { kind: 'versions', detail: { topic, counts: { stale, conflicting }, examples } }
}

interface Read {
  record: LogRecord
  event: ChangeEvent
}

/** Compares the events of one type with the rows of the ledger that have their keys. */
async function compare(
  { tables, databases, hashBacker }: VersionCheckDependencies,
  type: ChangeEvent['type'],
  read: readonly Read[],
): Promise<ComparedVersions> {
  const rows = await ledgerRows<{ id: string; of_version: string; content: string }>(tables, databases, {
    type,
    keys: [...new Set(read.map(({ event }) => event.key))],
    columns: `toString(version) AS of_version, ${contentOf(columnsOf[type])} AS content`,
  })
  const found: ComparedVersions = {
    topic: topicOf[type],
    counts: { in_order: 0, stale: 0, conflicting: 0 },
    examples: [],
  }
  const states = rows.map(({ id, of_version, content }) => ({ id, version: BigInt(of_version), content }))
  const known = Map.groupBy(states, ({ id }) => id)
  for (const [key, ofKey] of Map.groupBy(read, ({ event }) => event.key)) {
    const own = ofKey.map(({ record, event }) => ({
      record,
      version: versionOf(event),
      // It is needed only if there is another state of this version.
      get content() {
        return hash('sha256', rowOf(event, hashBacker), 'hex')
      },
    }))
    const present = known.get(key) ?? []
    for (const [index, state] of own.entries()) {
      const outcome = outcomeOf(state, { before: own.slice(0, index), own, present })
      found.counts[outcome]++
      if (outcome !== 'in_order' && found.examples.length < examplesMax)
        found.examples.push(`${outcome} ${placeName(state.record)}`)
    }
  }
  return found
}

interface State {
  version: bigint
  content: string
}

/**
 * What an event is after those `before` it in the batch, and what the ledger has. The batch itself may be in the ledger by now: then its
 * own versions say nothing about the order. Pure.
 */
export function outcomeOf(
  state: State,
  { before, own, present }: Record<'before' | 'own' | 'present', readonly State[]>,
): Outcome {
  const { version } = state
  const isOwn = (one: State) => own.some(other => other.version === one.version)
  const earlier = [...before, ...present.filter(one => !isOwn(one))]
  if (earlier.some(one => one.version > version)) return 'stale'
  const same = [...before, ...present].filter(one => one.version === version)
  // Nothing of a deletion differs.
  const isConflict = version !== tombstoneVersion && same.some(one => one.content !== state.content)
  return isConflict ? 'conflicting' : 'in_order'
}

const columnsOf: Readonly<Record<ChangeEvent['type'], readonly TableColumn[]>> = {
  campaign: ledgerColumns,
  pledge: pledgeColumns,
  'api-key': apiKeyColumns,
}

/** The SHA-256 of a row's bytes, as ClickHouse computes it. */
function contentOf(columns: readonly TableColumn[]): string {
  return `lower(hex(SHA256(formatRow('RowBinary', ${columns.map(({ name }) => name).join(', ')}))))`
}

/** The bytes of the row that this event becomes. */
function rowOf(event: ChangeEvent, hashBacker: HashBacker): Uint8Array {
  if (event.type === 'campaign') return encodeRows(ledgerColumns, [campaignRow(event.key, event.data)])
  if (event.type === 'api-key') return encodeRows(apiKeyColumns, [apiKeyRow(event.key, event.data)])
  const writer = createEncodedRowWriter(pledgeEncoder(hashBacker), 256)
  writer.add(event)
  return writer.bytes()
}
