/**
 * Decode: turns a record of the log into a change event, or into a reject with its reason. Pure; never throws.
 *
 * A value is framed Avro or JSON: its first byte says which. A writer's schema is resolved to ours by Avro's rules. A record with an
 * unknown schema id is rejected like any other bad value; the reason names the id. If schemas come from a registry, the loop fetches
 * them before it decodes. JSON is read as the `data` of a line of NDJSON is. Headers are not read.
 */
import { isUtf8 } from 'node:buffer'
import {
  currentStateReader,
  earlierSchemas,
  isCurrentSchema,
  type StateReader,
  schemaIdOf,
  schemaIds,
  stateReader,
  unframe,
} from '../../../contracts/events/codec.ts'
import {
  type ApiKeyState,
  type CampaignState,
  type ChangeEvent,
  type EventType,
  eventTypeOf,
  eventTypes,
  isChangeTopic,
  type PledgeState,
} from '../../../contracts/events/event.ts'
import { parseState } from '../../../contracts/events/ndjson.ts'
import { decodePortalRecord } from '../../../contracts/events/portal-codec.ts'
import type { PortalEvent, PortalTopic, RemovedNotice } from '../../../contracts/events/portal-event.ts'
import { faultOf } from '../../../contracts/events/rules.ts'
import type { LogRecord } from '../../log/port.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { toBuffer } from '../../runtime/to-buffer.ts'

/** Why a record is not an event. It is a value, so that the rest of the batch goes on. */
export interface Rejected {
  reason: string
}

/**
 * The writer's schema of a schema id. If values with this id cannot be read, the reason, worded to follow the id
 * (`is ...`). `undefined` if the id is unknown.
 */
export type WriterSchemas = (schemaId: number) => { schema: object } | { reason: string } | undefined

/** Everything that a record of the log may be. */
export type LogEvent = ChangeEvent | PortalEvent | RemovedNotice

export type Decode = (record: LogRecord) => LogEvent | Rejected

/** `Decode`, with what a faster way to read the same values has to know (pledge-transcoder.ts). */
export interface Decoder extends Decode {
  /** Whether values with this schema id are written exactly as our schema of this type has them. */
  isCurrentSchema(type: EventType, schemaId: number): boolean
}

type AnyState = CampaignState | PledgeState | ApiKeyState

/** `isCurrent`: the writer's schema is ours. */
type Reader = { read: StateReader<AnyState>; isCurrent: boolean } | Rejected

// A value that begins with it is JSON. Framed Avro begins with 0.
const openBrace = 0x7b
// Far more than the topics have writers. Without a limit, a producer could make us compile every schema of a registry.
const readersMax = 1_000

/**
 * A decoder for the schemas in `writerSchemas`, or for the fixed ids of `contracts/events` if there are none. It never uses
 * both, because a registry may assign the fixed ids to any schema. It caches one compiled reader per schema id and type.
 */
export function createDecoder(writerSchemas?: WriterSchemas): Decoder {
  const readerOf = createReaders(writerSchemas)
  const read = eventReader(readerOf)
  const decode: Decode = record => {
    if (!isChangeTopic(record.topic)) return portalEvent(record)
    const event = read(record)
    const fault = 'reason' in event ? undefined : faultOf(event)
    return fault ? { reason: `${fault.field} ${fault.reason}` } : event
  }
  return Object.assign(decode, {
    isCurrentSchema(type: EventType, schemaId: number): boolean {
      const reader = readerOf(type, schemaId)
      return 'read' in reader && reader.isCurrent
    },
  })
}

/** Decodes without checking the rules, so its events may break them. For showing a reject to a person. */
export function createEventReader(writerSchemas?: WriterSchemas): ReadEvent {
  return eventReader(createReaders(writerSchemas))
}

type ReadEvent = (record: LogRecord) => ChangeEvent | Rejected

type ReaderOf = (type: EventType, schemaId: number) => Reader

function createReaders(writerSchemas: WriterSchemas | undefined): ReaderOf {
  const readers = new Map<string, Reader>()
  if (!writerSchemas) {
    for (const type of eventTypes) {
      readers.set(readerName(type, schemaIds[type]), { read: currentStateReader(type), isCurrent: true })
    }
    for (const { type, id, schema } of earlierSchemas) {
      readers.set(readerName(type, id), { read: stateReader(type, schema), isCurrent: false })
    }
  }

  return function readerOf(type: EventType, schemaId: number): Reader {
    const name = readerName(type, schemaId)
    const known = readers.get(name)
    if (known) return known
    const found = writerSchemas?.(schemaId)
    if (!found) return { reason: `schema id ${schemaId} is unknown for a ${type}` }
    // Not cached: the registry may have the schema later.
    if ('reason' in found) return { reason: `schema id ${schemaId} ${found.reason}` }
    const reader = compiledReader(type, schemaId, found.schema)
    const [oldest] = readers.keys()
    if (oldest !== undefined && readers.size >= readersMax) readers.delete(oldest)
    readers.set(name, reader)
    return reader
  }
}

function eventReader(readerOf: ReaderOf): ReadEvent {
  return record => {
    const key = readKey(record)
    if (typeof key !== 'string') return key
    if (!isChangeTopic(record.topic)) return { reason: "it is the portal's own, and is not shown" }
    const type = eventTypeOf[record.topic]
    if (record.value === null) return { type, key, data: null }
    if (record.value[0] === openBrace) {
      const state = parseState(type, record.value)
      if ('fault' in state) return { reason: `${state.fault.field} ${state.fault.reason}` }
      return { type, key, data: state.data } as ChangeEvent
    }
    const framed = unframe(record.value)
    // The value is neither Avro nor JSON, and its writer may have meant either.
    if ('reason' in framed) return record.value[0] ? { reason: `${framed.reason} and not { (JSON)` } : framed
    const reader = readerOf(type, framed.schemaId)
    if ('reason' in reader) return reader
    let data: AnyState
    try {
      data = reader.read(framed.avroBinary)
    } catch (error) {
      return { reason: `the value is not Avro of schema id ${framed.schemaId}: ${messageOf(error)}` }
    }
    // The reader belongs to this type, so state and type fit together.
    return { type, key, data } as ChangeEvent
  }
}

function portalEvent(record: LogRecord): PortalEvent | RemovedNotice | Rejected {
  const key = readKey(record)
  if (typeof key !== 'string') return key
  return decodePortalRecord(record.topic as PortalTopic, key, record)
}

function readKey({ key, unreadable }: LogRecord): string | Rejected {
  // Its value may be left out. Without this, the record could look like a tombstone.
  if (unreadable !== undefined) return { reason: unreadable }
  if (key === null) return { reason: 'the record has no key' }
  const text = toBuffer(key).toString('utf8')
  // Bytes that are not UTF-8 become this character. Two keys that differ only in such bytes must not become one.
  return text.includes('\ufffd') && !isUtf8(key) ? { reason: 'the key is not UTF-8' } : text
}

/** The schema ids that values are framed with, each once. Values without framing have none, and those of the portal are fixed. */
export function schemaIdsOf(records: readonly LogRecord[]): Set<number> {
  const ids = new Set<number>()
  let last: number | undefined
  for (const { topic, value } of records) {
    const id = value === null || !isChangeTopic(topic) ? undefined : schemaIdOf(value)
    // Nearly all records of a delivery have the same.
    if (id === last || id === undefined) continue
    ids.add(id)
    last = id
  }
  return ids
}

function compiledReader(type: EventType, schemaId: number, schema: object): Reader {
  try {
    return { read: stateReader(type, schema), isCurrent: isCurrentSchema(type, schema) }
  } catch (error) {
    return { reason: `schema id ${schemaId} cannot be read as a ${type}: ${messageOf(error)}` }
  }
}

function readerName(type: EventType, schemaId: number): string {
  return `${type}/${schemaId}`
}
