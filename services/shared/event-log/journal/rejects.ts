/** The journal's rejects: records that could not be projected, stored with their original bytes. */
import type { DatabaseSync } from 'node:sqlite'
import { topics } from '../../../../contracts/events/event.ts'
import type { LogRecord, Reject, StoredReject } from '../port.ts'
import type { RejectFilter } from '../reject-filter.ts'

export interface RejectQuery extends RejectFilter {
  /** How many at most. */
  limit: number
  /** Fewer if their keys and values have more bytes than this, but at least one. Default 64 MiB. */
  bytesMax?: number
}

const listBytesMax = 64 * 1024 ** 2

type Row = Record<string, unknown>

/** Stores rejects. A record that is stored already stays as it is. Run it inside a write transaction. */
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

const isAskedFor = `(:topic IS NULL OR topic = :topic) AND (:reasonPart IS NULL OR instr(reason, :reasonPart) > 0)
  AND (:since IS NULL OR rejected_at >= :since) AND (:until IS NULL OR rejected_at < :until)`

/** The latest rejects first. */
export function listRejects(db: DatabaseSync, query: RejectQuery): StoredReject[] {
  const { limit, bytesMax = listBytesMax } = query
  const rows = db
    .prepare(
      `SELECT * FROM rejects WHERE ${isAskedFor} ORDER BY rejected_at DESC, topic, partition, offset DESC LIMIT :limit`,
    )
    .iterate({ ...parametersOf(query), limit })
  return upTo(bytesMax, rows).map(storedReject)
}

/**
 * The next rejects in the order in which they were stored: those after the row `after`, up to the row `last`. `next`
 * is the next value of `after`. If there are no rejects, there are no more.
 */
export function readRejects(
  db: DatabaseSync,
  { after, last, limit, bytesMax = listBytesMax, ...filter }: RejectQuery & { after: number; last: number },
): { rejects: StoredReject[]; next: number } {
  const found = db
    .prepare(
      `SELECT rowid AS row, * FROM rejects WHERE rowid > :after AND rowid <= :last AND ${isAskedFor}
       ORDER BY rowid LIMIT :limit`,
    )
    .iterate({ ...parametersOf(filter), after, last, limit })
  const rows = upTo(bytesMax, found)
  return { rejects: rows.map(storedReject), next: Number(rows.at(-1)?.row ?? after) }
}

/** The row that was stored last, or 0 if there is none. */
export function lastReject(db: DatabaseSync): number {
  return Number(db.prepare('SELECT ifnull(max(rowid), 0) AS last FROM rejects').get()?.last)
}

function parametersOf({ topic, reasonPart, since, until }: RejectFilter) {
  return { topic: topic ?? null, reasonPart: reasonPart ?? null, since: since ?? null, until: until ?? null }
}

function upTo(bytesMax: number, rows: Iterable<Row>): Row[] {
  const kept: Row[] = []
  let bytes = 0
  for (const row of rows) {
    bytes += (bytesOrNull(row.key)?.length ?? 0) + (bytesOrNull(row.value)?.length ?? 0)
    if (bytes > bytesMax && kept.length > 0) break
    kept.push(row)
  }
  return kept
}

/** How many rejects match the filter. */
export function countRejects(db: DatabaseSync, filter: RejectFilter): number {
  const row = db
    .prepare(`SELECT count(*) AS rejects FROM rejects WHERE ${isAskedFor}`)
    .get(parametersOf(filter))
  return Number(row?.rejects)
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
