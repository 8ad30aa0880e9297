/** Reads the rejects (rejects.ts) for the commands and for `status`. */
import { type Topic, topics } from '../../contracts/events/event.ts'
import type { Header, LogRecord } from '../log/port.ts'
import type { Databases, Tables } from './port.ts'
import {
  headerBytesMax,
  keyBytesMax,
  placeName,
  type Reject,
  type RejectPlace,
  valueBytesMax,
} from './rejects.ts'

export interface StoredReject extends Reject {
  /** Unix ms. */
  rejectedAt: number
  /** When a retry settled it, Unix ms; 0: it is open. */
  settledAt?: number
  /** What the record had, in bytes. More than what is stored if something was cut off. */
  sizes: { key: number; value: number; headers: number }
  /** How many headers the record had. */
  headerCount: number
}

/** All given conditions must hold. Without conditions, all rejects match. */
export interface RejectFilter {
  topic?: Topic
  /** The reason contains this exact text. */
  reasonPart?: string
  /** Rejected at this time or later, Unix ms. */
  since?: number
  /** Rejected before this time, Unix ms. */
  until?: number
  /** Of one of these places. A topic that was made anew has its places twice. At most a thousand. */
  places?: readonly RejectPlace[]
  /** No retry has settled it. */
  isOpen?: boolean
}

export interface ReasonCount {
  /** The reason, without its values. */
  reason: string
  count: number
  /** When the first and the last of them were rejected, Unix ms. */
  first: number
  last: number
  /** The place of one of them, for `rejects show`. */
  example: string
}

type Source = { tables: Pick<Tables, 'rows'>; databases: Databases }

// Of one statement: how many rejects, and how much is kept of them.
const list = { bytesMax: 64 * 1024 ** 2 }
const part = { rowsMax: 500, bytesMax: 8 * 1024 ** 2 }

const place = 'log, topic, partition, offset, appended_at'

/** How many rejects match the filter, and how many of them no retry has settled. */
export async function rejectCounts(
  source: Source,
  filter: RejectFilter = {},
): Promise<{ total: number; open: number }> {
  const columns = 'count() AS total, countIf(toUnixTimestamp64Milli(settled_at) = 0) AS open'
  const [found] = await selected<{ total: number; open: number }>(source, columns, filter)
  return found ?? { total: 0, open: 0 }
}

/** The latest rejects first; fewer than `limit` if more than 64 MiB are kept of them. */
export async function latestRejects(
  source: Source,
  filter: RejectFilter,
  limit: number,
): Promise<StoredReject[]> {
  const order = 'rejected_at DESC, topic, partition, offset DESC'
  const rows = await readRows(source, filter, { ...list, rowsMax: limit, order })
  return rows.map(storedReject)
}

/** All rejects that match the filter, in the order of their places, in parts of at most 500 and about 8 MiB. */
export async function* walkRejects(source: Source, filter: RejectFilter): AsyncGenerator<StoredReject[]> {
  for (let after: Row | undefined; ; ) {
    const rows = await readRows(source, filter, { ...part, order: place, after })
    if (rows.length === 0) return
    yield rows.map(storedReject)
    after = rows.at(-1)
  }
}

/** Rejects by the kind of their reason, the most frequent first, and how many kinds there are. */
export async function countReasons(
  source: Source,
  filter: RejectFilter,
  limit: number,
): Promise<{ matched: number; reasons: number; counts: ReasonCount[] }> {
  const sums = 'count() AS matched, uniqExact(reason_kind) AS reasons'
  const [all] = await selected<{ matched: number; reasons: number }>(source, sums, filter)
  const columns = `reason_kind AS reason, count() AS count, min(toUnixTimestamp64Milli(rejected_at)) AS first,
    max(toUnixTimestamp64Milli(rejected_at)) AS last,
    argMin(concat(topic, '/', toString(partition), '/', toString(offset)), rejected_at) AS example`
  const end = `GROUP BY reason_kind ORDER BY count DESC, last DESC, reason LIMIT ${limit}`
  const counts = await selected<ReasonCount>(source, columns, filter, end)
  return { ...{ matched: 0, reasons: 0, ...all }, counts }
}

function selected<Row>(
  { tables, databases: { base } }: Source,
  columns: string,
  filter: RejectFilter,
  end = '',
): Promise<Row[]> {
  const { condition, parameters } = conditionOf(filter)
  return tables.rows({
    query: `SELECT ${columns} FROM ${base}.rejects FINAL WHERE ${condition} ${end}`,
    query_params: parameters,
  })
}

function conditionOf({ topic, reasonPart, since, until, places, isOpen }: RejectFilter) {
  const conditions = [
    topic !== undefined && 'topic = {topic:String}',
    reasonPart !== undefined && 'position(reason, {reasonPart:String}) > 0',
    since !== undefined && 'toUnixTimestamp64Milli(rejected_at) >= {since:Int64}',
    until !== undefined && 'toUnixTimestamp64Milli(rejected_at) < {until:Int64}',
    isOpen && 'toUnixTimestamp64Milli(settled_at) = 0',
    places && "concat(topic, '/', toString(partition), '/', toString(offset)) IN {places:Array(String)}",
  ]
  const parameters = { topic, reasonPart, since, until, places: places?.map(placeName) }
  return {
    condition: ['true', ...conditions.filter(Boolean)].join(' AND '),
    parameters: Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== undefined)),
  }
}

interface Row {
  log: string
  topic: string
  partition: number
  offset: number
  appended_at: number
  rejected_ms: number
  settled_ms: number
  reason: string
  key_base64: string | null
  key_bytes: number
  value_base64: string | null
  value_bytes: number
  headers: [name: string, base64: string][]
  header_count: number
  header_bytes: number
}

interface Reading {
  order: string
  rowsMax: number
  /** No more is read than this, but one reject at least. */
  bytesMax: number
  /** Only those of later places. */
  after?: Row | undefined
}

const keptBytes = `least(key_bytes, ${keyBytesMax}) + least(value_bytes, ${valueBytesMax}) + least(header_bytes, ${headerBytesMax})`

/** Which rejects are read is found first, without their bytes. These travel as base64, because JSON has only text. */
function readRows(
  { tables, databases: { base } }: Source,
  filter: RejectFilter,
  { order, rowsMax, bytesMax, after }: Reading,
): Promise<Row[]> {
  const { condition, parameters } = conditionOf(filter)
  const later =
    after === undefined
      ? ''
      : `AND (${place}) > ({log:String}, {after:String}, {partition:UInt32}, {offset:UInt64}, {appended:Int64})`
  return tables.rows<Row>({
    query: `SELECT ${place}, toUnixTimestamp64Milli(rejected_at) AS rejected_ms,
        toUnixTimestamp64Milli(settled_at) AS settled_ms, reason,
        base64Encode(key) AS key_base64, key_bytes, base64Encode(value) AS value_base64, value_bytes,
        arrayMap((name, one) -> [name, base64Encode(one)], header_names, header_values) AS headers, header_count, header_bytes
      FROM ${base}.rejects FINAL
      WHERE (${place}) GLOBAL IN
      (
        SELECT ${place} FROM
        (
          SELECT ${place}, row_number() OVER inOrder AS nth, sum(bytes) OVER inOrder AS reached
          FROM
          (
            SELECT ${place}, rejected_at, ${keptBytes} AS bytes FROM ${base}.rejects FINAL WHERE ${condition} ${later}
            ORDER BY ${order} LIMIT ${rowsMax}
          )
          WINDOW inOrder AS (ORDER BY ${order} ROWS UNBOUNDED PRECEDING)
        )
        WHERE nth = 1 OR reached <= ${bytesMax}
      )
      ORDER BY ${order}`,
    query_params: {
      ...parameters,
      ...(after && {
        ...{ log: after.log, after: after.topic, partition: after.partition, offset: after.offset },
        appended: after.appended_at,
      }),
    },
  })
}

function storedReject(row: Row): StoredReject {
  const topic = topics.find(known => known === row.topic)
  if (!topic) throw new Error(`a reject of an unknown topic: ${row.topic}`)
  const record: LogRecord = {
    topic,
    partition: row.partition,
    offset: row.offset,
    appendedAt: row.appended_at,
    key: bytesOf(row.key_base64),
    value: bytesOf(row.value_base64),
    ...(row.headers.length > 0 && {
      headers: row.headers.map(([name, one]): Header => [name, Buffer.from(one, 'base64')]),
    }),
  }
  return {
    record,
    reason: row.reason,
    rejectedAt: row.rejected_ms,
    settledAt: row.settled_ms,
    sizes: { key: row.key_bytes, value: row.value_bytes, headers: row.header_bytes },
    headerCount: row.header_count,
  }
}

function bytesOf(base64: string | null): Uint8Array | null {
  return base64 === null ? null : Buffer.from(base64, 'base64')
}
