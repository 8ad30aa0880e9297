/**
 * The bytes of the portal's states: the framing of `codec.ts`, always with the schema ids that are fixed here. They are not
 * registered in a schema registry: only Pledgeview writes these topics, and people can sign in while the registry is away.
 *
 * An id stands for one schema for ever. A changed schema gets an id of its own.
 */
import { readFileSync } from 'node:fs'
import type avro from 'avsc'
import { beginValue, checkedText, compileSchema } from './avro-types.ts'
import { framed, unframe } from './codec.ts'
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
  versionIn,
} from './portal-event.ts'

/** The fixed schema id of each type's current schema. */
export const portalSchemaIds: Readonly<Record<PortalType, number>> = {
  account: 14,
  notice: 16,
}

/** The current schemas, as JSON documents. */
export const portalSchemas: Readonly<Record<PortalType, object>> = {
  account: readSchema('account'),
  notice: readSchema('notice'),
}

const types: { readonly [T in PortalType]: avro.Type } = {
  account: compileSchema(portalSchemas.account),
  notice: compileSchema(portalSchemas.notice),
}

/** The most bytes of a value. A state has a few hundred, a notice a few thousand. */
export const portalBytesMax = 64 * 1024

/** The bytes of a state. Throws an `Error` if it does not fit its schema, breaks a rule, or is too large. */
export function encodePortalEvent(event: PortalEvent): Buffer {
  const fault = portalFaultOf(event)
  if (fault) throw new Error(`${fault.field} ${fault.reason}`)
  const bytes = framed(portalSchemaIds[event.type], types[event.type].toBuffer(event.data))
  if (bytes.length > portalBytesMax)
    throw new Error(`this ${event.type} has ${bytes.length} bytes, more than ${portalBytesMax}`)
  return bytes
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
  if (value.length > portalBytesMax)
    return { reason: `the value has ${value.length} bytes, more than ${portalBytesMax}` }
  const parts = unframe(value)
  if ('reason' in parts) return parts
  const type = portalTypes.find(one => portalTopicOf[one] === topic)
  if (type === undefined || portalSchemaIds[type] !== parts.schemaId) {
    return { reason: `schema id ${parts.schemaId} is unknown in the topic ${topic}` }
  }
  try {
    beginValue()
    const event = { type, data: checkedText(types[type].fromBuffer(parts.avroBinary)) } as PortalEvent
    const fault = portalFaultOf(event)
    if (fault) return { reason: `${fault.field} ${fault.reason}` }
    return portalKeyOf(event) === key ? event : { reason: "the key is not the state's own" }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return { reason: `the value is not Avro of schema id ${parts.schemaId}: ${why}` }
  }
}

/**
 * A tombstone. In `accounts` it is a state without an address, whose version is below every life of an account. So it changes no
 * account: the portal deletes one by a state. A purge appends tombstones of a key that nothing else has.
 */
function withoutValue(
  topic: PortalTopic,
  key: string,
  at: number,
): PortalEvent | RemovedNotice | { reason: string } {
  if (topic === 'notices') {
    const isId = key.length > 0 && key.length <= portalIdLengthMax
    return isId ? { type: 'removed-notice', notice_id: key, at } : { reason: 'the key is no id of a notice' }
  }
  const times = { created_at: 0, changed_at: 0, version: Number(versionIn(0n, Math.max(0, at))) }
  const event: PortalEvent = {
    type: 'account',
    data: { account_id: key, email: '', sessions_valid_from: 0, ...times },
  }
  const fault = portalFaultOf(event)
  return fault ? { reason: `${fault.field} ${fault.reason}` } : event
}

function readSchema(name: string): object {
  return JSON.parse(readFileSync(new URL(`${name}.avsc.json`, import.meta.url), 'utf8')) as object
}
