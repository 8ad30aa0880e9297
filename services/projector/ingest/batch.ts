/**
 * A batch: the ledger rows of many records, and what follows once they are written: the batch log's row, the rejects and
 * the offsets. The offsets travel inside the batch, so a batch of nothing but rejects still advances them.
 */
import { schemaIdOf } from '../../../contracts/events/codec.ts'
import { ledgerColumns } from '../../../contracts/tables/campaign-columns.ts'
import { bytesOf, type Delivery, type LogRecord, type Position, partitionName } from '../../log/port.ts'
import { invariant } from '../../runtime/ops/invariants.ts'
import {
  createEncodedRowWriter,
  createRowWriter,
  encodeRows,
  type TableColumn,
} from '../../tables/clickhouse/row-binary.ts'
import { qualified } from '../../tables/generation-log.ts'
import type { Databases, TableInsert } from '../../tables/port.ts'
import type { Reject } from '../../tables/rejects.ts'
import { addMisplaced, type MisplacedRecords } from '../producers/fault-report.ts'
import type { HashBacker } from './backer-hash.ts'
import type { Decode, Decoder, LogEvent } from './decode.ts'
import {
  accountColumns,
  accountRow,
  apiKeyColumns,
  apiKeyRow,
  campaignRow,
  noticeColumns,
  noticeRow,
  pledgeColumns,
  pledgeEncoder,
  removedNoticeRow,
} from './ledger-rows.ts'
import { createPledgeTranscoder } from './pledge-transcoder.ts'

export type Batch = ReturnType<typeof emptyBatch>

const lastMax = 500

export function emptyBatch(assignment: string, hashBacker: HashBacker) {
  /** Campaigns whose read row may have to change. */
  const campaignIds = new Set<string>()
  return {
    assignment,
    /** The offset to read next, by topic and partition. */
    positions: new Map<string, Position>(),
    campaignRows: createRowWriter(ledgerColumns),
    pledgeRows: createEncodedRowWriter(pledgeEncoder(hashBacker)),
    apiKeyRows: createRowWriter(apiKeyColumns, 0),
    accountRows: createRowWriter(accountColumns, 0),
    noticeRows: createRowWriter(noticeColumns, 0),
    pledgeTranscoder: createPledgeTranscoder(hashBacker, id => campaignIds.add(id)),
    campaignIds,
    rejects: [] as Reject[],
    /** The last records, at most `lastMax`. */
    last: [] as readonly LogRecord[],
    /** Of the events: those whose records are not in the partition of their key. */
    misplaced: new Map() as MisplacedRecords,
    records: 0,
    bytes: 0,
    eventsByTopic: { campaigns: 0, pledges: 0, 'api-keys': 0, accounts: 0, notices: 0 },
    /** When the oldest record entered the log, Unix ms. */
    oldestAt: Number.POSITIVE_INFINITY,
    /** The last poll of the log brought no records. */
    isLogDry: false,
    /** It ends a backlog of the log. The loop finds that out. */
    isEndOfBacklog: false,
  }
}

/** Decodes a delivery into the batch. Both must have the same assignment. */
export function addDelivery(batch: Batch, delivery: Delivery, decode: Decode | Decoder): void {
  const isOurPledge = 'isCurrentSchema' in decode ? ourPledges(decode) : () => false
  for (const record of delivery.records) {
    batch.records++
    batch.bytes += bytesOf(record)
    if (record.appendedAt < batch.oldestAt) batch.oldestAt = record.appendedAt
    // Nearly all records are ordinary pledges. What is not is decoded in the general way, also every reject.
    if (isOurPledge(record) && batch.pledgeRows.addFrom(batch.pledgeTranscoder, record)) {
      batch.eventsByTopic.pledges++
      if (record.isMisplaced) addMisplaced(batch.misplaced, record)
      continue
    }
    const decoded = decode(record)
    if ('reason' in decoded) {
      batch.rejects.push({ record, reason: decoded.reason })
    } else {
      batch.eventsByTopic[record.topic]++
      if (record.isMisplaced) addMisplaced(batch.misplaced, record)
      addEvent(batch, decoded)
    }
  }
  batch.last = [...batch.last, ...delivery.records].slice(-lastMax)
  batch.isLogDry = delivery.records.length === 0
  for (const position of delivery.positions) {
    const place = partitionName(position)
    const before = batch.positions.get(place)?.next ?? 0
    invariant('batch-positions', position.next >= before, () => ({ place, before, next: position.next }))
    batch.positions.set(place, position)
  }
}

/** Whether a record is a pledge that is written with our own schema. */
function ourPledges(decoder: Decoder): (record: LogRecord) => boolean {
  let lastId: number | undefined
  let isCurrent = false
  return ({ topic, value }) => {
    if (topic !== 'pledges' || value === null) return false
    const schemaId = schemaIdOf(value)
    if (schemaId === undefined) return false
    if (schemaId !== lastId) {
      isCurrent = decoder.isCurrentSchema('pledge', schemaId)
      lastId = schemaId
    }
    return isCurrent
  }
}

/** The inserts that write the batch's rows into the ledger. A kind without rows has no insert. */
export function ledgerInserts(batch: Batch, databases: Databases): TableInsert[] {
  const ledgers = [
    { table: 'campaign_ledger', columns: ledgerColumns, writer: batch.campaignRows },
    { table: 'pledge_ledger', columns: pledgeColumns, writer: batch.pledgeRows },
    { table: 'api_key_ledger', columns: apiKeyColumns, writer: batch.apiKeyRows },
    { table: 'account_ledger', columns: accountColumns, writer: batch.accountRows },
    { table: 'notice_ledger', columns: noticeColumns, writer: batch.noticeRows },
  ]
  return ledgers
    .filter(({ writer }) => writer.rows > 0)
    .map(({ table, columns, writer }) => ({
      table: qualified(table, databases),
      columns,
      rows: writer.bytes(),
    }))
}

const batchLogColumns: readonly TableColumn[] = [
  { name: 'projector', type: 'LowCardinality(String)' },
  { name: 'sequence', type: 'UInt64' },
  { name: 'log', type: 'String' },
  { name: 'positions', type: 'Array(Tuple(topic String, partition UInt32, next UInt64))' },
  { name: 'events', type: 'UInt64' },
  { name: 'rejects', type: 'UInt64' },
  { name: 'keys', type: 'UInt64' },
  { name: 'campaign_ids', type: 'Array(String)' },
  { name: 'oldest_at', type: "DateTime64(3, 'UTC')" },
  { name: 'restamp_before', type: "DateTime64(3, 'UTC')" },
]

/**
 * The batch log's row. `projector`: this run of this process. `sequence`: counts its batches from 1, without gaps. `log`: as
 * `EventReader.log`. `restampBefore`: see positions.ts.
 */
export function batchLogInsert(
  batch: Batch,
  databases: Databases,
  {
    projector,
    sequence,
    log,
    restampBefore,
  }: { projector: string; sequence: number; log: string; restampBefore: number },
): TableInsert {
  const { records, rejects, eventsByTopic } = batch
  const events = Object.values(eventsByTopic).reduce((sum, count) => sum + count, 0)
  invariant('batch-records', events + rejects.length === records, () => ({ records, eventsByTopic }))
  const row = [
    projector,
    sequence,
    log,
    [...batch.positions.values()],
    records - rejects.length,
    rejects.length,
    eventsByTopic['api-keys'],
    [...batch.campaignIds],
    storableTime(batch.oldestAt),
    restampBefore,
  ]
  return {
    table: `${databases.ledger}.batch_log`,
    columns: batchLogColumns,
    rows: encodeRows(batchLogColumns, [row]),
  }
}

/**
 * The nearest time that ClickHouse can store, Unix ms. Producers set the times of records, so any number can occur. A batch
 * that only moves positions has no oldest record at all.
 */
function storableTime(ms: number): number {
  return Math.round(Math.min(Math.max(ms, Date.UTC(1900, 0, 1)), Date.UTC(2299, 11, 31)))
}

function addEvent(batch: Batch, event: LogEvent): void {
  switch (event.type) {
    case 'pledge':
      batch.pledgeRows.add(event)
      batch.campaignIds.add(event.data?.campaign_id ?? event.key.slice(0, event.key.indexOf('/')))
      return
    case 'campaign':
      batch.campaignRows.add(campaignRow(event.key, event.data))
      batch.campaignIds.add(event.key)
      return
    case 'api-key':
      batch.apiKeyRows.add(apiKeyRow(event.key, event.data))
      return
    case 'account':
      batch.accountRows.add(accountRow(event.data))
      return
    case 'notice':
      batch.noticeRows.add(noticeRow(event.data))
      return
    case 'removed-notice':
      batch.noticeRows.add(removedNoticeRow(event))
      return
    default:
      event satisfies never
  }
}
