/**
 * A batch: ledger rows of many records, with all that must happen once they are in: the batch log's row, the rejects,
 * and the offsets. Offsets travel inside the batch, so a batch of nothing but rejects still advances.
 */
import type { ChangeEvent, Topic } from '../../contracts/events/event.ts'
import type { Delivery, Position, Reject } from '../shared/event-log/port.ts'
import type { Databases, TableInsert } from '../shared/tables/port.ts'
import type { Decode } from './decode.ts'
import {
  apiKeyColumns,
  apiKeyRow,
  campaignColumns,
  campaignRow,
  pledgeColumns,
  pledgeRow,
} from './ledger-rows.ts'
import { createRowText, type RowText } from './row-text.ts'

export interface Batch {
  assignment: string
  /** By topic and partition, the offset to read next. */
  positions: Map<string, Position>
  campaignRows: RowText
  pledgeRows: RowText
  apiKeyRows: RowText
  /** Campaigns whose read row may have to change. */
  campaignIds: Set<string>
  rejects: Reject[]
  records: number
  bytes: number
  eventsByTopic: Record<Topic, number>
  /** When the oldest record entered the log, in ms since the epoch. */
  oldestAt: number
}

export function emptyBatch(assignment: string): Batch {
  return {
    assignment,
    positions: new Map(),
    campaignRows: createRowText(),
    pledgeRows: createRowText(),
    apiKeyRows: createRowText(0),
    campaignIds: new Set(),
    rejects: [],
    records: 0,
    bytes: 0,
    eventsByTopic: { campaigns: 0, pledges: 0, 'api-keys': 0 },
    oldestAt: Number.POSITIVE_INFINITY,
  }
}

/** Decodes a delivery into the batch. The delivery must be of the batch's assignment. */
export function addDelivery(
  batch: Batch,
  delivery: Delivery,
  decode: Decode,
  hashBacker: (backerId: string) => string,
): void {
  for (const record of delivery.records) {
    const decoded = decode(record)
    batch.records++
    batch.bytes += (record.value?.length ?? 0) + (record.key?.length ?? 0)
    if (record.appendedAt < batch.oldestAt) batch.oldestAt = record.appendedAt
    if ('reason' in decoded) {
      batch.rejects.push({ record, reason: decoded.reason })
    } else {
      batch.eventsByTopic[record.topic]++
      addEvent(batch, decoded, hashBacker)
    }
  }
  for (const position of delivery.positions) {
    batch.positions.set(`${position.topic}/${position.partition}`, position)
  }
}

/** The inserts that put the batch's rows into the ledger; none for an empty kind. */
export function ledgerInserts(batch: Batch, databases: Databases): TableInsert[] {
  const inserts: TableInsert[] = [
    {
      table: `${databases.model}.campaign_ledger`,
      columns: campaignColumns,
      format: 'JSONCompactEachRow',
      body: batch.campaignRows.text(),
    },
    {
      table: `${databases.model}.pledge_ledger`,
      columns: pledgeColumns,
      format: 'TSV',
      body: batch.pledgeRows.text(),
    },
    {
      table: `${databases.model}.api_key_ledger`,
      columns: apiKeyColumns,
      format: 'JSONCompactEachRow',
      body: batch.apiKeyRows.text(),
    },
  ]
  return inserts.filter(({ body }) => body !== '')
}

/** The batch log's row: `projector` is this run of this process, `sequence` its batches from 1 without gaps. */
export function batchLogInsert(
  batch: Batch,
  databases: Databases,
  { projector, sequence }: { projector: string; sequence: number },
): TableInsert {
  const row = [
    projector,
    sequence,
    [...batch.positions.values()].map(({ topic, partition, next }) => ({ topic, partition, next })),
    batch.records - batch.rejects.length,
    batch.rejects.length,
    batch.eventsByTopic['api-keys'],
    [...batch.campaignIds],
    storableTime(batch.oldestAt),
  ]
  return {
    table: `${databases.model}.batch_log`,
    columns: ['projector', 'sequence', 'positions', 'events', 'rejects', 'keys', 'campaign_ids', 'oldest_at'],
    format: 'JSONCompactEachRow',
    body: JSON.stringify(row),
  }
}

/**
 * The nearest time that ClickHouse can store. Producers set the times of a log, so any number may come, and a batch
 * that only moves positions on has no oldest record at all.
 */
function storableTime(ms: number): string {
  const nearest = Math.min(Math.max(ms, Date.UTC(1900, 0, 1)), Date.UTC(2299, 11, 31))
  return new Date(nearest).toISOString().replace('T', ' ').replace('Z', '')
}

function addEvent(batch: Batch, event: ChangeEvent, hashBacker: (backerId: string) => string): void {
  switch (event.type) {
    case 'pledge':
      batch.pledgeRows.add(pledgeRow(event.key, event.data, hashBacker))
      batch.campaignIds.add(event.key.slice(0, event.key.indexOf('/')))
      return
    case 'campaign':
      batch.campaignRows.add(`${campaignRow(event.key, event.data)}\n`)
      batch.campaignIds.add(event.key)
      return
    case 'api-key':
      batch.apiKeyRows.add(`${apiKeyRow(event.key, event.data)}\n`)
      return
    default:
      event satisfies never
  }
}
