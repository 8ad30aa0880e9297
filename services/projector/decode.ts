/**
 * Decode: a record of the log becomes a change event, or a reject with its reason. Pure; never throws.
 *
 * Readers resolve a writer's schema to ours by Avro's rules. A schema id that nobody knows is a reject like any
 * other bad value: it names the id. Where schemas come from a registry, the loop has them fetched before it decodes.
 */
import { isUtf8 } from 'node:buffer'
import {
  currentStateReader,
  type StateReader,
  schemaIds,
  stateReader,
  unframe,
} from '../../contracts/events/codec.ts'
import {
  type ApiKeyState,
  type CampaignState,
  type ChangeEvent,
  type EventType,
  eventTypeOf,
  eventTypes,
  type PledgeState,
} from '../../contracts/events/event.ts'
import { faultOf } from '../../contracts/events/rules.ts'
import type { LogRecord } from '../shared/event-log/port.ts'

/** Why a record is no event: a value, so that the batch goes on without it. */
export interface Rejected {
  reason: string
}

/**
 * What a schema id stands for: the writer's schema, or why no value under it can be read, said of the id (`is ...`).
 * `undefined` where nothing is known of it.
 */
export type WriterSchemas = (schemaId: number) => { schema: object } | { reason: string } | undefined

export type Decode = (record: LogRecord) => ChangeEvent | Rejected

type AnyState = CampaignState | PledgeState | ApiKeyState

type Reader = StateReader<AnyState> | Rejected

// Far more than the topics have writers; who knows a registry's ids could have a reader made of each.
const readersMax = 1_000

/**
 * A decoder over the schemas that `writerSchemas` knows; without it, over the fixed ids of `contracts/events`. Never over
 * both: a registry may give the fixed ids to any schema. It remembers one compiled reader per schema id and type.
 */
export function createDecoder(writerSchemas?: WriterSchemas): Decode {
  const read = createEventReader(writerSchemas)
  return record => {
    const event = read(record)
    return 'reason' in event ? event : checked(event)
  }
}

/** The same but for the rules, which what it returns may break: for a person who looks at a reject. */
export function createEventReader(writerSchemas?: WriterSchemas): Decode {
  const readers = new Map<string, Reader>()
  if (!writerSchemas) {
    for (const type of eventTypes) readers.set(readerName(type, schemaIds[type]), currentStateReader(type))
  }

  function readerOf(type: EventType, schemaId: number): Reader {
    const name = readerName(type, schemaId)
    const known = readers.get(name)
    if (known) return known
    const found = writerSchemas?.(schemaId)
    if (!found) return { reason: `schema id ${schemaId} is unknown for a ${type}` }
    // Not remembered: what a registry does not have today it may have tomorrow.
    if ('reason' in found) return { reason: `schema id ${schemaId} ${found.reason}` }
    const reader = compiledReader(type, schemaId, found.schema)
    const [oldest] = readers.keys()
    if (oldest !== undefined && readers.size >= readersMax) readers.delete(oldest)
    readers.set(name, reader)
    return reader
  }

  return record => {
    const type = eventTypeOf[record.topic]
    if (record.key === null) return { reason: 'the record has no key' }
    const key = toBuffer(record.key).toString('utf8')
    if (record.value === null) {
      // A state's key must be its entity's own; a tombstone has nothing else to tell that bytes were lost.
      return isUtf8(record.key) ? { type, key, data: null } : { reason: 'the key is not UTF-8' }
    }
    const framed = unframe(record.value)
    if ('reason' in framed) return framed
    const reader = readerOf(type, framed.schemaId)
    if ('reason' in reader) return reader
    let data: AnyState
    try {
      data = reader(framed.avroBinary)
    } catch (error) {
      return { reason: `the value is not Avro of schema id ${framed.schemaId}: ${messageOf(error)}` }
    }
    // The reader is the type's own, so state and type belong together.
    return { type, key, data } as ChangeEvent
  }
}

/** The schema ids that values are framed with, each once; what is not framed has none. */
export function schemaIdsOf(records: readonly LogRecord[]): Set<number> {
  const ids = new Set<number>()
  for (const { value } of records) {
    const framed = value && unframe(value)
    if (framed && 'schemaId' in framed) ids.add(framed.schemaId)
  }
  return ids
}

function compiledReader(type: EventType, schemaId: number, schema: object): Reader {
  try {
    return stateReader(type, schema)
  } catch (error) {
    return { reason: `schema id ${schemaId} cannot be read as a ${type}: ${messageOf(error)}` }
  }
}

function checked(event: ChangeEvent): ChangeEvent | Rejected {
  const fault = faultOf(event)
  return fault ? { reason: `${fault.field} ${fault.reason}` } : event
}

function readerName(type: EventType, schemaId: number): string {
  return `${type}/${schemaId}`
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
