/**
 * The bytes of the portal's states: the framing of `codec.ts`, always with the schema ids that are fixed here. They are not
 * registered in a schema registry. Only the portal reads these topics, the topic `accounts` has records of two kinds, and
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
  type PortalEventOf,
  type PortalTopic,
  type PortalType,
  portalFaultOf,
  portalKeyOf,
  portalTopicOf,
  portalTypes,
} from './portal-event.ts'

/** The fixed schema id of each type's current schema. */
export const portalSchemaIds: Readonly<Record<PortalType, number>> = {
  account: 11,
  integration: 12,
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

const typeOfId = new Map(portalTypes.map(type => [portalSchemaIds[type], type]))

const framingBytes = 5

/** The bytes of a state. Throws an `Error` if it does not fit its schema or breaks a rule. */
export function encodePortalEvent(event: PortalEvent): Buffer {
  const fault = portalFaultOf(event)
  if (fault) throw new Error(`${fault.field} ${fault.reason}`)
  const avroBinary = types[event.type].toBuffer(event.data)
  const framed = Buffer.allocUnsafe(framingBytes + avroBinary.length)
  framed[0] = 0
  framed.writeUInt32BE(portalSchemaIds[event.type], 1)
  avroBinary.copy(framed, framingBytes)
  return framed
}

/** The event in a record of a topic, or the reason why there is none. A reason has nothing of the content. Never throws. */
export function decodePortalEvent<T extends PortalTopic>(
  topic: T,
  key: string,
  value: Uint8Array,
): PortalEventOf[T] | { reason: string } {
  const framed = unframe(value)
  if ('reason' in framed) return framed
  const type = typeOfId.get(framed.schemaId)
  if (type === undefined || portalTopicOf[type] !== topic) {
    return { reason: `schema id ${framed.schemaId} is unknown in the topic ${topic}` }
  }
  try {
    beginText()
    const data = checkedText(types[type].fromBuffer(framed.avroBinary))
    const event = { type, data } as PortalEvent
    const fault = portalFaultOf(event)
    if (fault) return { reason: `${fault.field} ${fault.reason}` }
    if (portalKeyOf(event) !== key) {
      return { reason: "the key is not the state's own" }
    }
    // The type belongs to the topic, as was checked above.
    return event as PortalEventOf[T]
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return { reason: `the value is not Avro of schema id ${framed.schemaId}: ${why}` }
  }
}

function readSchema(name: PortalType): object {
  return JSON.parse(readFileSync(new URL(`${name}.avsc.json`, import.meta.url), 'utf8')) as object
}
