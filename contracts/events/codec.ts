/**
 * The wire form of event values: Confluent framing (byte 0, 4-byte schema id, Avro binary).
 *
 * Without a schema registry the ids are fixed here and are never reused. With a registry, all ids are the registry's.
 * It does not know the fixed ids and may give them to other schemas. Reading resolves the writer's schema against
 * ours by Avro's rules, so a producer may be older or newer than this program.
 *
 * Source: Avro 1.11 specification, "Schema Resolution"; Confluent wire format.
 */
import { readFileSync } from 'node:fs'
import avro from 'avsc'
import { beginValue, checkedText, compileSchema, pathText } from './avro-types.ts'
import {
  type ApiKeyState,
  type CampaignState,
  type EventType,
  eventTypes,
  type PledgeState,
  type StateEvent,
} from './event.ts'

/** A schema id for each event type. */
export type SchemaIds = Readonly<Record<EventType, number>>

/**
 * A schema document with its fixed ids. An id is never given to another schema: a changed schema has a new `schema_id`, and the former one
 * goes to `earlier_ids`. `since`: the id with which the field came. A schema of an earlier id does not have it.
 */
interface SchemaDocument {
  schema_id: number
  earlier_ids?: readonly number[]
  fields: readonly SchemaField[]
}

interface SchemaField {
  name: string
  since?: number
}

const documents: Readonly<Record<EventType, SchemaDocument>> = {
  campaign: readSchema('campaign'),
  pledge: readSchema('pledge'),
  'api-key': readSchema('api-key'),
}

/** The schema of this id as Avro has it. */
function schemaAt({ schema_id: _, earlier_ids: __, fields, ...rest }: SchemaDocument, id: number): object {
  const known = fields.filter(({ since = 0 }) => since <= id)
  return { ...rest, fields: known.map(({ since: ___, ...field }) => field) }
}

/** The fixed schema id of each event type's current schema. */
export const schemaIds: SchemaIds = {
  campaign: documents.campaign.schema_id,
  pledge: documents.pledge.schema_id,
  'api-key': documents['api-key'].schema_id,
}

/** A fixed schema id of an earlier version of a schema. Values in the log have it, and producers may still use it. */
export interface EarlierSchema {
  type: EventType
  id: number
  schema: object
}

/** The earlier schemas. */
export const earlierSchemas: readonly EarlierSchema[] = eventTypes.flatMap(type =>
  (documents[type].earlier_ids ?? []).map(id => ({ type, id, schema: schemaAt(documents[type], id) })),
)

/** The current schemas, as JSON documents. A producer registers them or compiles against them. */
export const schemas: Readonly<Record<EventType, object>> = {
  campaign: schemaAt(documents.campaign, schemaIds.campaign),
  pledge: schemaAt(documents.pledge, schemaIds.pledge),
  'api-key': schemaAt(documents['api-key'], schemaIds['api-key']),
}

/**
 * Reads one Avro binary (without framing) as our state. Throws if the bytes do not fit the writer's schema, or if a text
 * is not UTF-8.
 */
export type StateReader<S> = (avroBinary: Buffer) => S

interface StateOf {
  campaign: CampaignState
  pledge: PledgeState
  'api-key': ApiKeyState
}

const types: { readonly [T in EventType]: avro.Type } = {
  campaign: compileSchema(schemas.campaign),
  pledge: compileSchema(schemas.pledge),
  'api-key': compileSchema(schemas['api-key']),
}

/** How many bytes stand before the Avro binary. */
export const framingBytes = 5

/** Encodes one state and frames it. Throws an `Error` that names the field if the state does not fit the schema. */
export type StateEncoder = (event: StateEvent) => Buffer

/** The encoder that frames with the fixed ids. */
export const encodeState: StateEncoder = createStateEncoder(schemaIds)

/** The encoder that frames with these ids: the ids that a registry gave to the current schemas. */
export function createStateEncoder(ids: SchemaIds): StateEncoder {
  return event => {
    const type = types[event.type]
    try {
      return framed(ids[event.type], type.toBuffer(event.data))
    } catch {
      throw new Error(firstMismatch(type, event.data))
    }
  }
}

/** Frames an Avro binary. */
export function framed(schemaId: number, avroBinary: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(framingBytes + avroBinary.length)
  bytes[0] = 0
  bytes.writeUInt32BE(schemaId, 1)
  avroBinary.copy(bytes, framingBytes)
  return bytes
}

/** The reader for values that were written with this schema. Throws if Avro cannot resolve it to ours. */
export function stateReader<T extends EventType>(type: T, writerSchema: object): StateReader<StateOf[T]> {
  const reader = types[type]
  const resolver = resolverOf(reader, compileSchema(writerSchema))
  return avroBinary => {
    beginValue()
    return checkedText(reader.fromBuffer(avroBinary, resolver) as StateOf[T])
  }
}

/** Reads values of the writer's type as ours. Throws an `Error` that names the field: most errors of avsc name only types. */
function resolverOf(ours: avro.Type, theirs: avro.Type): ReturnType<avro.Type['createResolver']> {
  try {
    // Records and enums match by name without the namespace. That is Avro's rule, but avsc follows it only on request.
    return ours.createResolver(theirs, { ignoreNamespaces: true })
  } catch (error) {
    if (!avro.Type.isType(ours, 'record') || !avro.Type.isType(theirs, 'record')) throw error
    if (ours.name?.split('.').at(-1) !== theirs.name?.split('.').at(-1))
      throw new Error(`its record is ${theirs.name}, not ${ours.name}`)
    const writers = (theirs as avro.types.RecordType).fields
    for (const { name, type } of (ours as avro.types.RecordType).fields) {
      const written = writers.find(field => field.name === name)
      try {
        if (written) resolverOf(type, written.type)
      } catch (cause) {
        throw new Error(`${name}: ${(cause as Error).message}`)
      }
    }
    throw error
  }
}

/**
 * Whether values of this writer's schema have the same bytes as those of ours, and mean the same. Documentation, defaults
 * and logical types make no difference. Throws if it is not Avro.
 */
export function isCurrentSchema(type: EventType, writerSchema: object): boolean {
  return types[type].equals(compileSchema(writerSchema))
}

/** The reader for values that were written with the current schema. It is fast because nothing has to be resolved. */
export function currentStateReader<T extends EventType>(type: T): StateReader<StateOf[T]> {
  const reader = types[type]
  return avroBinary => {
    beginValue()
    return checkedText(reader.fromBuffer(avroBinary) as StateOf[T])
  }
}

/**
 * Splits a framed value. The Avro part is a view on the same bytes. Returns a reason instead if the framing is not
 * Confluent's.
 */
export function unframe(value: Uint8Array): { schemaId: number; avroBinary: Buffer } | { reason: string } {
  if (value[0]) return { reason: `the first byte is ${value[0]}, not 0 (Confluent framing)` }
  if (value.length < framingBytes) return { reason: `${value.length} bytes are too short for a framed value` }
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  return {
    schemaId: bytes.readUInt32BE(1),
    avroBinary: bytes.subarray(framingBytes),
  }
}

/** The schema id of a framed value, or `undefined` if the framing is not Confluent's. It makes no view on the value. */
export function schemaIdOf(value: Uint8Array): number | undefined {
  if (value.length < framingBytes || value[0] !== 0) return undefined
  const low = ((value[2] as number) << 16) | ((value[3] as number) << 8) | (value[4] as number)
  return (value[1] as number) * 0x100_0000 + low
}

/** Names the field in the same way as `faultOf`: `rewards[2].amount_minor`. */
function firstMismatch(type: avro.Type, value: unknown): string {
  const found: string[] = []
  const errorHook = (path: string[], part: unknown, expected: avro.Type): void => {
    const reason = part === undefined ? 'is missing' : `is not ${expected.branchName ?? expected.typeName}`
    found.push(`${pathText(path)} ${reason}`)
  }
  type.isValid(value, { errorHook })
  return found[0] ?? 'the state does not fit the schema'
}

function readSchema(name: string): SchemaDocument {
  return JSON.parse(readFileSync(new URL(`${name}.avsc.json`, import.meta.url), 'utf8')) as SchemaDocument
}
