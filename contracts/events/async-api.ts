/** The topics of the change events as an AsyncAPI document (asyncapi.json). Pure. */
import { schemas } from './codec.ts'
import { type EventType, eventTypes, topicOf } from './event.ts'

const avro = 'application/vnd.apache.avro;version=1.9.0'
const keys: Readonly<Record<EventType, string>> = {
  campaign: 'campaign_id',
  pledge: 'campaign_id/pledge_id',
  'api-key': 'The API key',
}
const docOf = (type: EventType) => (schemas[type] as { doc?: string }).doc ?? ''

export function asyncApi(version: string): object {
  return {
    // Not 3.1.0: many generators do not know it, and make empty models. Nothing that is new in it is used here.
    asyncapi: '3.0.0',
    info: {
      title: 'Pledgeview change events',
      version,
      description:
        'What a producer writes. A value is the whole current state of its entity; a null value (a tombstone) deletes it for good. The rules that schemas cannot express are in README.md.',
    },
    defaultContentType: 'application/octet-stream',
    channels: byType(type => ({
      address: topicOf[type],
      description: docOf(type),
      messages: { [type]: { $ref: `#/components/messages/${type}` } },
      bindings: { kafka: { topic: topicOf[type], topicConfiguration: { 'cleanup.policy': ['compact'] } } },
    })),
    operations: byType(type => ({
      action: 'receive',
      summary: `Projects each ${type} event.`,
      channel: { $ref: `#/channels/${type}` },
    })),
    components: {
      messages: byType(type => ({
        name: type,
        summary: docOf(type),
        payload: { schemaFormat: avro, schema: schemas[type] },
        bindings: {
          kafka: {
            key: { type: 'string', description: `${keys[type]}, as UTF-8` },
            schemaIdLocation: 'payload',
            schemaIdPayloadEncoding: 'confluent',
          },
        },
      })),
    },
  }
}

function byType(make: (type: EventType) => object): object {
  return Object.fromEntries(eventTypes.map(type => [type, make(type)]))
}
