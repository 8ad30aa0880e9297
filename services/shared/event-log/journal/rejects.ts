/** The journal's rejects: records that could not be projected, kept with the bytes that they came with. */
import type { DatabaseSync } from 'node:sqlite'
import { type Topic, topics } from '../../../../contracts/events/event.ts'
import type { LogRecord, Reject, StoredReject } from '../port.ts'

export interface RejectQuery {
  topic?: Topic
  /** Only rejects whose reason holds this text. */
  reasonPart?: string
  /** Only rejects of this time or later, in ms since the epoch. */
  since?: number
  /** How many at most. */
  limit: number
}

type Row = Record<string, unknown>

/** Keeps rejects; a record that is kept already stays as it is. Run it inside a write transaction. */
export function storeRejects(db: DatabaseSync, rejects: readonly Reject[], rejectedAt: number): void {
  const statement = db.prepare(
    `INSERT INTO rejects (topic, partition, offset, reason, key, value, headers, appended_at, rejected_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (topic, partition, offset) DO NOTHING`,
  )
  for (const { record, reason } of rejects) {
    const { topic, partition, offset, key, value, headers, appendedAt } = record
    statement.run(topic, partition, offset, reason, key, value, headersText(headers), appendedAt, rejectedAt)
  }
}

/** The latest rejects first. */
export function listRejects(
  db: DatabaseSync,
  { topic, reasonPart, since, limit }: RejectQuery,
): StoredReject[] {
  const rows = db
    .prepare(
      `SELECT * FROM rejects
       WHERE (?1 IS NULL OR topic = ?1) AND (?2 IS NULL OR instr(reason, ?2) > 0) AND rejected_at >= ?3
       ORDER BY rejected_at DESC, topic, partition, offset DESC LIMIT ?4`,
    )
    .all(topic ?? null, reasonPart ?? null, since ?? 0, limit)
  return rows.map(storedReject)
}

export function findReject(
  db: DatabaseSync,
  { topic, partition, offset }: Pick<LogRecord, 'topic' | 'partition' | 'offset'>,
): StoredReject | undefined {
  const row = db
    .prepare('SELECT * FROM rejects WHERE topic = ? AND partition = ? AND offset = ?')
    .get(topic, partition, offset)
  return row && storedReject(row)
}

export function countRejects(db: DatabaseSync): number {
  return Number(db.prepare('SELECT count(*) AS rejects FROM rejects').get()?.rejects)
}

function storedReject(row: Row): StoredReject {
  const topic = topics.find(known => known === row.topic)
  if (!topic) throw new Error(`a reject of an unknown topic: ${row.topic}`)
  const headers = row.headers === null ? undefined : readHeaders(String(row.headers))
  return {
    record: {
      topic,
      partition: Number(row.partition),
      offset: Number(row.offset),
      appendedAt: Number(row.appended_at),
      key: bytesOrNull(row.key),
      value: bytesOrNull(row.value),
      ...(headers && { headers }),
    },
    reason: String(row.reason),
    rejectedAt: Number(row.rejected_at),
  }
}

function bytesOrNull(value: unknown): Uint8Array | null {
  return value instanceof Uint8Array ? value : null
}

function headersText(headers: LogRecord['headers']): string | null {
  if (!headers) return null
  const encoded = Object.entries(headers).map(([name, bytes]) => [
    name,
    Buffer.from(bytes).toString('base64'),
  ])
  return JSON.stringify(Object.fromEntries(encoded))
}

function readHeaders(text: string): Record<string, Uint8Array> {
  const encoded = Object.entries(JSON.parse(text) as Record<string, string>)
  return Object.fromEntries(
    encoded.map(([name, base64]) => [name, new Uint8Array(Buffer.from(base64, 'base64'))]),
  )
}
