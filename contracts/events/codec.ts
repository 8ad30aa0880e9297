/**
 * The wire form of event values: Confluent framing (byte 0, 4-byte schema id, Avro binary).
 *
 * Without a schema registry the ids are fixed here and never reused. Reading resolves a writer's schema against
 * ours by Avro's rules, so a producer may be older or newer than this program.
 *
 * Source: Avro 1.11 specification, "Schema Resolution"; Confluent wire format.
 */
import { readFileSync } from 'node:fs'
import avro from 'avsc'
import type { ApiKeyState, CampaignState, EventType, Long, PledgeState, StateEvent } from './event.ts'

/** The fixed schema id of each event type's current schema. */
export const schemaIds: Readonly<Record<EventType, number>> = {
  campaign: 1,
  pledge: 2,
  'api-key': 3,
}

/** The current schemas, as JSON documents; what a producer registers or compiles against. */
export const schemas: Readonly<Record<EventType, object>> = {
  campaign: readSchema('campaign'),
  pledge: readSchema('pledge'),
  'api-key': readSchema('api-key'),
}

/** Reads one writer's Avro binary (without framing) as our state; throws on bytes that do not fit. */
export type StateReader<S> = (avroBinary: Buffer) => S

interface StateOf {
  campaign: CampaignState
  pledge: PledgeState
  'api-key': ApiKeyState
}

/** avsc throws on a long above 2^53; this one reads it as a bigint and everything smaller as a number. */
const longType = avro.types.LongType.__with({
  fromBuffer: (bytes: Buffer): Long => {
    const high = bytes.readInt32LE(4)
    const isSafe = high >= -0x20_0000 && high < 0x20_0000
    return isSafe ? high * 0x1_0000_0000 + bytes.readUInt32LE(0) : bytes.readBigInt64LE(0)
  },
  toBuffer: (value: Long): Buffer => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64LE(BigInt(value))
    return bytes
  },
  fromJSON: Number,
  toJSON: Number,
  isValid: (value: unknown): boolean =>
    typeof value === 'bigint' ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value),
  compare: (a: Long, b: Long): number => (a < b ? -1 : a > b ? 1 : 0),
})

const types: { readonly [T in EventType]: avro.Type } = {
  campaign: compile(schemas.campaign),
  pledge: compile(schemas.pledge),
  'api-key': compile(schemas['api-key']),
}

const framingBytes = 5

/** Frames and encodes one state. Throws an `Error` that names the field when the state does not fit the schema. */
export function encodeState(event: StateEvent): Buffer {
  const type = types[event.type]
  let avroBinary: Buffer
  try {
    avroBinary = type.toBuffer(event.data)
  } catch {
    throw new Error(firstMismatch(type, event.data))
  }
  const framed = Buffer.allocUnsafe(framingBytes + avroBinary.length)
  framed[0] = 0
  framed.writeUInt32BE(schemaIds[event.type], 1)
  avroBinary.copy(framed, framingBytes)
  return framed
}

/** The reader for values that a writer with this schema wrote. Throws when Avro cannot resolve it to ours. */
export function stateReader<T extends EventType>(type: T, writerSchema: object): StateReader<StateOf[T]> {
  const reader = types[type]
  const resolver = reader.createResolver(compile(writerSchema))
  return avroBinary => reader.fromBuffer(avroBinary, resolver) as StateOf[T]
}

/** The reader for values written with the current schema: no resolution, so it is the fast one. */
export function currentStateReader<T extends EventType>(type: T): StateReader<StateOf[T]> {
  const reader = types[type]
  return avroBinary => reader.fromBuffer(avroBinary) as StateOf[T]
}

/**
 * Takes a framed value apart. The Avro part is a view on the same bytes.
 * Returns a reason instead where the framing is not Confluent's.
 */
export function unframe(value: Uint8Array): { schemaId: number; avroBinary: Buffer } | { reason: string } {
  if (value.length < framingBytes) return { reason: `${value.length} bytes are too short for a framed value` }
  if (value[0] !== 0)
    return {
      reason: `the first byte is ${value[0]}, not 0 (Confluent framing)`,
    }
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  return {
    schemaId: bytes.readUInt32BE(1),
    avroBinary: bytes.subarray(framingBytes),
  }
}

function compile(schema: object): avro.Type {
  return avro.Type.forSchema(schema as avro.Schema, {
    registry: {},
    typeHook: attributes => (isLong(attributes) ? longType : undefined),
  })
}

function isLong(schema: unknown): boolean {
  return (
    schema === 'long' ||
    (typeof schema === 'object' && schema !== null && 'type' in schema && schema.type === 'long')
  )
}

function firstMismatch(type: avro.Type, value: unknown): string {
  let message = 'does not fit the schema'
  type.isValid(value, {
    errorHook: path => {
      message = `${path.join('.') || 'data'}: missing, or not of the schema's type`
      throw new Error(message)
    },
  } as Parameters<avro.Type['isValid']>[1])
  return message
}

function readSchema(name: string): object {
  return JSON.parse(readFileSync(new URL(`${name}.avsc.json`, import.meta.url), 'utf8')) as object
}
