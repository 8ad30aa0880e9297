/**
 * Decode: a record of the log becomes a change event, or a reject with its reason. Pure; never throws.
 *
 * Readers resolve a writer's schema to ours by Avro's rules. A schema id that nobody knows is a reject like any
 * other bad value: it names the id.
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
  type PledgeState,
} from '../../contracts/events/event.ts'
import { faultOf } from '../../contracts/events/rules.ts'
import type { LogRecord } from '../shared/event-log/port.ts'

/** The writer's schema of an id, or `undefined` where the id is unknown. */
export type WriterSchemas = (schemaId: number) => object | undefined

/** Why a record is no event: a value, so that the batch goes on without it. */
export interface Rejected {
  reason: string
}

export type Decode = (record: LogRecord) => ChangeEvent | Rejected

type AnyState = CampaignState | PledgeState | ApiKeyState

/**
 * A decoder over the schemas that `writerSchemas` knows beside the fixed ids of `contracts/events`.
 * It remembers one compiled reader per schema id and type.
 */
export function createDecoder(writerSchemas: WriterSchemas = () => undefined): Decode {
  const readers = new Map<string, StateReader<AnyState>>()
  for (const type of ['campaign', 'pledge', 'api-key'] as const) {
    readers.set(readerName(type, schemaIds[type]), currentStateReader(type))
  }

  function readerOf(type: EventType, schemaId: number): StateReader<AnyState> | Rejected {
    const name = readerName(type, schemaId)
    const known = readers.get(name)
    if (known) return known
    const schema = writerSchemas(schemaId)
    if (!schema) return { reason: `schema id ${schemaId} is unknown for a ${type}` }
    try {
      const reader = stateReader(type, schema)
      readers.set(name, reader)
      return reader
    } catch (error) {
      return { reason: `schema id ${schemaId} cannot be read as a ${type}: ${messageOf(error)}` }
    }
  }

  return record => {
    const type = eventTypeOf[record.topic]
    if (record.key === null) return { reason: 'the record has no key' }
    const key = toBuffer(record.key).toString('utf8')
    if (record.value === null) {
      // A state's key must be its entity's own; a tombstone has nothing else to tell that bytes were lost.
      return isUtf8(record.key) ? checked({ type, key, data: null }) : { reason: 'the key is not UTF-8' }
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
    return checked({ type, key, data } as ChangeEvent)
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
