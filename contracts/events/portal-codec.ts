/**
 * The bytes of the portal's states: the framing of `codec.ts`, always with the schema ids that are fixed here. They are not
 * registered in a schema registry. Only Pledgeview writes these topics, the topic `accounts` has records of two kinds, and
 * people can sign in while the registry is away.
 *
 * An id stands for one schema for ever. A changed schema gets an id of its own, and records with the earlier id stay readable.
 */
import { readFileSync } from 'node:fs'
import type avro from 'avsc'
import { beginText, checkedText, compileSchema } from './avro-types.ts'
import { unframe } from './codec.ts'
import {
  type PortalEvent,
  type PortalTopic,
  type PortalType,
  portalFaultOf,
  portalIdLengthMax,
  portalKeyOf,
  portalTopicOf,
  portalTypes,
  type RemovedNotice,
} from './portal-event.ts'

/** The fixed schema id of each type's current schema. */
export const portalSchemaIds: Readonly<Record<PortalType, number>> = {
  account: 14,
  integration: 15,
  notice: 13,
}

/** The current schemas, as JSON documents. */
export const portalSchemas: Readonly<Record<PortalType, object>> = {
  account: readSchema('account'),
  integration: readSchema('integration'),
  notice: readSchema('notice'),
}

const types: { readonly [T in PortalType]: avro.Type } = {
  account: compileSchema(portalSchemas.account),
  integration: compileSchema(portalSchemas.integration),
  notice: compileSchema(portalSchemas.notice),
}

interface Reader {
  type: PortalType
  /** Undefined: the current schema. */
  resolver?: avro.Resolver
}

// States of these schemas have no version: an earlier version of the program took the record that was appended last.
const earlier = [
  { type: 'account', id: 11, schema: readSchema('earlier/account-11') },
  { type: 'integration', id: 12, schema: readSchema('earlier/integration-12') },
] as const

const readers = new Map<number, Reader>([
  ...portalTypes.map((type): [number, Reader] => [portalSchemaIds[type], { type }]),
  ...earlier.map(({ type, id, schema }): [number, Reader] => [
    id,
    { type, resolver: types[type].createResolver(compileSchema(schema)) },
  ]),
])

const framingBytes = 5

/** The most bytes of a value. A state has a few hundred, a notice a few thousand. */
export const portalBytesMax = 64 * 1024

/** The bytes of a state. Throws an `Error` if it does not fit its schema, breaks a rule, or is too large. */
export function encodePortalEvent(event: PortalEvent): Buffer {
  const fault = portalFaultOf(event)
  if (fault) throw new Error(`${fault.field} ${fault.reason}`)
  const avroBinary = types[event.type].toBuffer(event.data)
  const bytes = framingBytes + avroBinary.length
  if (bytes > portalBytesMax)
    throw new Error(`this ${event.type} has ${bytes} bytes, more than ${portalBytesMax}`)
  const framed = Buffer.allocUnsafe(bytes)
  framed[0] = 0
  framed.writeUInt32BE(portalSchemaIds[event.type], 1)
  avroBinary.copy(framed, framingBytes)
  return framed
}

/**
 * The event in a record of a topic, or the reason why there is none. A reason has nothing of the content. Never throws.
 * `appendedAt`: when the record entered the log, Unix ms.
 */
export function decodePortalRecord(
  topic: PortalTopic,
  key: string,
  { value, appendedAt }: { value: Uint8Array | null; appendedAt: number },
): PortalEvent | RemovedNotice | { reason: string } {
  if (value === null) return withoutValue(topic, key, appendedAt)
  const framed = unframe(value)
  if ('reason' in framed) return framed
  const reader = readers.get(framed.schemaId)
  if (reader === undefined || portalTopicOf[reader.type] !== topic) {
    return { reason: `schema id ${framed.schemaId} is unknown in the topic ${topic}` }
  }
  const { type, resolver } = reader
  try {
    beginText()
    const event = {
      type,
      data: checkedText(types[type].fromBuffer(framed.avroBinary, resolver)),
    } as PortalEvent
    const fault = portalFaultOf(event)
    if (fault) return { reason: `${fault.field} ${fault.reason}` }
    if (portalKeyOf(event) !== key) return { reason: "the key is not the state's own" }
    // A claim of an earlier version.
    if (event.type === 'notice') return event.data.sender === null ? event : removedNotice(key, appendedAt)
    // An earlier version wrote the states of a key one after the other, so their times have the order of the log.
    if (resolver) event.data.version = event.data.changed_at
    return event
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return { reason: `the value is not Avro of schema id ${framed.schemaId}: ${why}` }
  }
}

/** A tombstone. In `accounts` an earlier version deleted with it; the record's time is its version. */
function withoutValue(
  topic: PortalTopic,
  key: string,
  appendedAt: number,
): PortalEvent | RemovedNotice | { reason: string } {
  if (topic === 'notices') return removedNotice(key, appendedAt)
  const [account_id = '', integration_id, ...rest] = key.split('/')
  const times = { created_at: 0, changed_at: 0, version: Math.max(0, appendedAt) }
  const event: PortalEvent =
    integration_id === undefined
      ? { type: 'account', data: { account_id, email: '', sessions_valid_from: 0, ...times } }
      : {
          type: 'integration',
          data: { account_id, integration_id, name: '', url: '', contact_email: '', ...times },
        }
  const fault = portalFaultOf(event)
  if (fault) return { reason: `${fault.field} ${fault.reason}` }
  return rest.length > 0 ? { reason: 'the key has more than one slash' } : event
}

function removedNotice(key: string, at: number): RemovedNotice | { reason: string } {
  const isId = key.length > 0 && key.length <= 2 * portalIdLengthMax + 1
  return isId ? { type: 'removed-notice', notice_id: key, at } : { reason: 'the key is no id of a notice' }
}

function readSchema(name: string): object {
  return JSON.parse(readFileSync(new URL(`${name}.avsc.json`, import.meta.url), 'utf8')) as object
}
