/** The ingest loop whose schemas come from a registry that fails: no good event is rejected or lost for that. */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { createStateEncoder, encodeState, schemas } from '../../../../contracts/events/codec.ts'
import { type ChangeEvent, type StateEvent, topicOf } from '../../../../contracts/events/event.ts'
import type { NewRecord } from '../../../../services/log/port.ts'
import { SchemaRegistryError } from '../../../../services/log/registry/answers.ts'
import { createSchemaRegistry, registerSchemas } from '../../../../services/log/registry/schema-registry.ts'
import type { Databases } from '../../../../services/tables/port.ts'
import { createMemoryLog, type MemoryLog } from '../../../support/events/memory-log.ts'
import { readModelOf } from '../../../support/events/model.ts'
import { pledgeEvent, smallWorld } from '../../../support/events/sample-events.ts'
import { expectedReading, readViews } from '../../../support/projector/model-tables.ts'
import { keptRejects } from '../../../support/projector/reject-filters.ts'
import { type RunningProjector, startProjector } from '../../../support/projector/running-projector.ts'
import { useModelTables } from '../../../support/projector/use-model-tables.ts'
import {
  alwaysAnswers,
  type FakeSchemaRegistry,
  startFakeSchemaRegistry,
} from '../../../support/servers/fake-schema-registry.ts'

// Only a hang takes this long.
const soonMsMax = 60_000
const world = smallWorld()
const nothing = { 'campaigns/0': 0, 'pledges/0': 0, 'api-keys/0': 0 }
const unavailable = alwaysAnswers(503, 'no registry behind this')

describe('the ingest loop with a schema registry', () => {
  const model = useModelTables()
  let databases: Databases
  let fake: FakeSchemaRegistry
  let log: MemoryLog
  let running: RunningProjector | undefined
  let encode: (event: StateEvent) => Buffer

  beforeEach(async () => {
    databases = await model.freshDatabases()
    fake = await startFakeSchemaRegistry()
    encode = createStateEncoder(
      await registerSchemas(createSchemaRegistry({ url: fake.url }), topic => topic),
    )
    log = createMemoryLog()
    fake.calls.splice(0)
    return async () => {
      await running?.stop().catch(() => {})
      running = undefined
      await fake.close()
      await model.giveBack(databases)
    }
  })

  function start(settings: Record<string, string> = {}): RunningProjector {
    running = startProjector({
      reader: log.reader,
      tables: model.tables,
      databases,
      // That a schema is missing is believed for longer than a test takes.
      schemaRegistry: createSchemaRegistry({ url: fake.url, missingMs: 600_000 }),
      settings: { PLEDGEVIEW_BATCH_MS_MAX: '20', ...settings },
    })
    return running
  }

  /** How often the registry was asked again. */
  async function schemaRetries({ metrics }: RunningProjector): Promise<number> {
    const { values } = await metrics.retries.get()
    return values.find(({ labels }) => labels.stage === 'schemas')?.value ?? 0
  }

  function recordOf(event: ChangeEvent, schemaId?: number): NewRecord {
    const value = Buffer.from(encode(event as StateEvent))
    if (schemaId !== undefined) value.writeUInt32BE(schemaId, 1)
    return { topic: topicOf[event.type], key: Buffer.from(event.key), value }
  }

  function recordsOf(events: readonly ChangeEvent[]): NewRecord[] {
    return events.map(event => recordOf(event))
  }

  async function expectReading(events: readonly ChangeEvent[]): Promise<void> {
    expect(await readViews(model.tables, databases)).toEqual(expectedReading(readModelOf(events)))
  }

  test('takes no id for one of the fixed ones: the registry may have given it to another schema', async () => {
    fake.put(1, { schema: JSON.stringify(schemas.pledge) })
    fake.put(2, { schema: JSON.stringify(schemas.campaign) })
    const pledge = pledgeEvent({ campaign_id: 'a', pledge_id: 'under-1' })
    const fixed = pledgeEvent({ campaign_id: 'a', pledge_id: 'fixed' }) as StateEvent
    log.append([
      ...recordsOf(world),
      recordOf(pledge, 1),
      { topic: 'pledges', key: Buffer.from('a/fixed'), value: encodeState(fixed) },
    ])
    await start().drained()
    await expectReading([...world, pledge])
    expect(await keptRejects(model.tables, databases)).toMatchObject([
      { reason: expect.stringContaining('schema id 2 cannot be read as a pledge') },
    ])
  })

  test('while the registry is away nothing is rejected, committed or read on, and then all is projected', async () => {
    fake.misbehave(unavailable)
    log.append(recordsOf(world))
    const projector = start()
    await vi.waitFor(async () => expect(await schemaRetries(projector)).toBeGreaterThan(1), soonMsMax)
    log.append(recordsOf(world))
    await vi.waitFor(async () => expect(await schemaRetries(projector)).toBeGreaterThan(2), soonMsMax)
    expect(log.delivered()).toBe(world.length)
    expect(log.committed()).toEqual(nothing)
    fake.misbehave(undefined)
    await projector.drained()
    await expectReading(world)
    expect(await keptRejects(model.tables, databases)).toEqual([])
    expect(projector.service.health().failure).toBeUndefined()
  })

  test('a registry that stays away ends the projector, which says so and has moved past nothing', async () => {
    fake.misbehave(unavailable)
    log.append(recordsOf(world))
    const projector = start({ PLEDGEVIEW_RETRY_MS_MAX: '300' })
    await expect(projector.done).rejects.toBeInstanceOf(SchemaRegistryError)
    expect(projector.service.health().failure).toMatch(/schema registry at .* status 503/)
    expect(log.commits).toEqual([])
    expect(await keptRejects(model.tables, databases)).toEqual([])
  })

  test('a schema that the registry does not have rejects its records alone, and is asked for a few times only; any other once', async () => {
    const bad = Array.from({ length: 30 }, (_, n) => pledgeEvent({ campaign_id: 'a', pledge_id: `bad${n}` }))
    log.append([...recordsOf(world), ...bad.map(event => recordOf(event, 999))])
    const projector = start()
    await projector.drained()
    log.append(bad.map(event => recordOf(event, 999)))
    await projector.drained()
    log.append(recordsOf(world))
    await projector.drained()
    expect(await keptRejects(model.tables, databases)).toHaveLength(60)
    expect(await projector.metrics.registry.metrics()).toMatch(
      /events_total{topic="pledges",outcome="rejected"} 60$/m,
    )
    await expectReading(world)
    expect(new Set((await keptRejects(model.tables, databases)).map(({ reason }) => reason))).toEqual(
      new Set(['schema id 999 is not in the schema registry']),
    )
    const asked = ['41', '42', '43', '999', '999', '999'].map(id => `GET /schemas/ids/${id}`)
    expect(fake.calls.toSorted()).toEqual(asked)
  })
})
