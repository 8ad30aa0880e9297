/** What the client of the schema registry promises on a real registry that speaks Confluent's API. */
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createStateEncoder, schemas } from '../../../../contracts/events/codec.ts'
import { type StateEvent, topicOf } from '../../../../contracts/events/event.ts'
import type { LogRecord } from '../../../../services/log/port.ts'
import { SchemaRegistryError } from '../../../../services/log/registry/answers.ts'
import {
  createSchemaRegistry,
  registerSchemas,
  type SchemaRegistry,
} from '../../../../services/log/registry/schema-registry.ts'
import { createDecoder, schemaIdsOf } from '../../../../services/projector/ingest/decode.ts'
import { apiKeyEvent, campaignEvent, pledgeEvent } from '../../../support/events/sample-events.ts'
import { schemaRegistryService } from '../../../support/services/schema-registry.ts'
import { useService } from '../../../support/services/test-service.ts'

const record = { type: 'record', name: 'Kept', fields: [{ name: 'a', type: 'string' }] }

describe('a schema registry', () => {
  const server = useService(schemaRegistryService)
  let registry: SchemaRegistry
  let subject: string

  beforeEach(() => {
    // Each test has a client that knows nothing yet.
    registry = createSchemaRegistry({ url: server().url })
    subject = `${randomUUID()}-value`
  })

  /** Registers like another producer: the document goes to the registry unchanged. */
  async function post(ofSubject: string, document: object): Promise<number> {
    const response = await fetch(`${server().url}/subjects/${ofSubject}/versions`, {
      method: 'POST',
      headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
      body: JSON.stringify(document),
    })
    const { id } = (await response.json()) as { id: number }
    return id
  }

  test('has no schema under an id that it never gave', async () => {
    await registry.learn(new Set([2 ** 31 - 1]))
    expect(registry.known(2 ** 31 - 1)).toEqual({ reason: 'is not in the schema registry' })
  })

  test('is known for every id once it was asked, also for one whose answer expired meanwhile', async () => {
    let now = 0
    const pause = async (ms: number) => {
      now += ms
    }
    const time = { monotonicMs: () => now, sleep: pause }
    const patient = createSchemaRegistry({ url: server().url, missingMs: 500 }, time)
    const [first, second] = [2 ** 31 - 1, 2 ** 31 - 2]
    await patient.learn(new Set([first]))
    await patient.learn(new Set([first, second]))
    expect([first, second].map(patient.known)).not.toContain(undefined)
  })

  test('says of a schema that is no Avro, or not whole, why it is not read', async () => {
    const jsonSchema = { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' }
    const json = await post(subject, { schema: JSON.stringify(jsonSchema), schemaType: 'JSON' })
    const whole = `${randomUUID()}-value`
    await registry.register(whole, record)
    const part = { type: 'record', name: 'Part', fields: [{ name: 'kept', type: 'Kept' }] }
    const references = [{ name: 'Kept', subject: whole, version: 1 }]
    const partial = await post(`${randomUUID()}-value`, { schema: JSON.stringify(part), references })
    await registry.learn(new Set([json, partial]))
    expect(registry.known(json)).toEqual({ reason: 'is a schema of type JSON; only AVRO is read' })
    expect(registry.known(partial)).toEqual({
      reason: 'is a schema with references; only schemas without references are read',
    })
  })

  test('refuses what is no schema, for good', async () => {
    const refused = registry.register(subject, { type: 'record', name: 'no fields' })
    await expect(refused).rejects.toBeInstanceOf(SchemaRegistryError)
    await expect(refused).rejects.toMatchObject({ retryable: false })
  })

  test('that is asked for under a wrong path is a failure, not a registry without schemas', async () => {
    const lost = createSchemaRegistry({ url: `${server().url}/nowhere` })
    await expect(lost.learn(new Set([1]))).rejects.toMatchObject({ retryable: true })
    expect(lost.known(1)).toBeUndefined()
  })

  test('gives the ids that events are framed with, by which another process reads them', async () => {
    const prefix = `${randomUUID()}.`
    const ids = await registerSchemas(registry, topic => `${prefix}${topic}`)
    expect(await registry.register(`${prefix}campaigns-value`, schemas.campaign)).toBe(ids.campaign)
    const events = [
      campaignEvent({ campaign_id: 'a' }),
      pledgeEvent({ campaign_id: 'a', pledge_id: 'p' }),
      apiKeyEvent({ key: 'k', account_id: 'acc' }),
    ]
    const encode = createStateEncoder(ids)
    const records = events.map(
      (event, offset): LogRecord => ({
        topic: topicOf[event.type],
        key: Buffer.from(event.key),
        value: encode(event as StateEvent),
        ...{ partition: 0, offset, appendedAt: 0 },
      }),
    )
    const reader = createSchemaRegistry({ url: server().url })
    await reader.learn(schemaIdsOf(records))
    expect(records.map(createDecoder(reader.known))).toEqual(events)
  })
})
