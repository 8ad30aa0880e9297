/**
 * The wire form of event values: Confluent framing (byte 0, 4-byte schema id, Avro binary).
 *
 * Without a schema registry the ids are fixed here and never reused; with one, all ids are the registry's, which knows
 * nothing of these and may give them to other schemas. Reading resolves a writer's schema against
 * ours by Avro's rules, so a producer may be older or newer than this program.
 *
 * Source: Avro 1.11 specification, "Schema Resolution"; Confluent wire format.
 */
import { readFileSync } from 'node:fs'
import type avro from 'avsc'
import { compileSchema } from './avro-types.ts'
import type { ApiKeyState, CampaignState, EventType, PledgeState, StateEvent } from './event.ts'

/** A schema id for each event type. */
export type SchemaIds = Readonly<Record<EventType, number>>

/** The fixed schema id of each event type's current schema. */
export const schemaIds: SchemaIds = {
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

/** Reads the state that begins at `at`, where states stand one behind the other; `end` is where the next begins. */
export type StateSequenceReader<S> = (avroBinary: Buffer, at: number) => { state: S; end: number }

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

const framingBytes = 5

/** Encodes one state and frames it. Throws an `Error` that names the field when the state does not fit the schema. */
export type StateEncoder = (event: StateEvent) => Buffer

/** The encoder that frames with the fixed ids. */
export const encodeState: StateEncoder = createStateEncoder(schemaIds)

/** The encoder that frames with these ids: those of the current schemas in a registry. */
export function createStateEncoder(ids: SchemaIds): StateEncoder {
  return event => {
    const type = types[event.type]
    let avroBinary: Buffer
    try {
      avroBinary = type.toBuffer(event.data)
    } catch {
      throw new Error(firstMismatch(type, event.data))
    }
    const framed = Buffer.allocUnsafe(framingBytes + avroBinary.length)
    framed[0] = 0
    framed.writeUInt32BE(ids[event.type], 1)
    avroBinary.copy(framed, framingBytes)
    return framed
  }
}

/** The reader for values that a writer with this schema wrote. Throws when Avro cannot resolve it to ours. */
export function stateReader<T extends EventType>(type: T, writerSchema: object): StateReader<StateOf[T]> {
  const reader = types[type]
  const resolver = resolverOf(type, writerSchema)
  return avroBinary => reader.fromBuffer(avroBinary, resolver) as StateOf[T]
}

/** As `stateReader`, for many states in one piece of bytes. Reading throws where the bytes end within a state. */
export function stateSequenceReader<T extends EventType>(
  type: T,
  writerSchema: object,
): StateSequenceReader<StateOf[T]> {
  const reader = types[type]
  const resolver = resolverOf(type, writerSchema)
  return (avroBinary, at) => {
    const { value, offset } = reader.decode(avroBinary, at, resolver)
    if (offset < 0) throw new Error('truncated buffer')
    return { state: value as StateOf[T], end: offset }
  }
}

// Records and enums match by their names without the namespace: that is Avro's rule, and avsc's only when asked.
function resolverOf(type: EventType, writerSchema: object): avro.Resolver {
  return types[type].createResolver(compileSchema(writerSchema), { ignoreNamespaces: true })
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

/** Names the field in the way that `faultOf` does: `rewards[2].amount_minor`. */
function firstMismatch(type: avro.Type, value: unknown): string {
  const found: string[] = []
  const errorHook = (path: string[], part: unknown, expected: avro.Type): void => {
    const reason = part === undefined ? 'is missing' : `is not ${expected.branchName ?? expected.typeName}`
    found.push(`${pathText(path)} ${reason}`)
  }
  type.isValid(value, { errorHook })
  return found[0] ?? 'the state does not fit the schema'
}

function pathText(path: readonly string[]): string {
  if (path.length === 0) return 'the state'
  return path
    .map((part, index) => (/^\d+$/.test(part) ? `[${part}]` : index === 0 ? part : `.${part}`))
    .join('')
}

function readSchema(name: string): object {
  return JSON.parse(readFileSync(new URL(`${name}.avsc.json`, import.meta.url), 'utf8')) as object
}
