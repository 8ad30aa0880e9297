/**
 * Producers of several versions side by side, their schemas in a registry: an older one that lacks fields with defaults,
 * a newer one with more fields and more statuses. Through journal, projector and fold the read rows are as if all had
 * written today's schemas, and a status of tomorrow is never public and never counts.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { schemas } from '../../../../contracts/events/codec.ts'
import type { ChangeEvent, EventType, StateEvent } from '../../../../contracts/events/event.ts'
import { openJournalReader, openJournalWriter } from '../../../../services/log/local/journal.ts'
import type { EventReader, EventWriter, NewRecord } from '../../../../services/log/port.ts'
import {
  createSchemaRegistry,
  type SchemaRegistry,
} from '../../../../services/log/registry/schema-registry.ts'
import type { Databases } from '../../../../services/tables/port.ts'
import { readModelOf } from '../../../support/model.ts'
import {
  expectedReading,
  type ModelTables,
  openModelTables,
  readViews,
} from '../../../support/model-tables.ts'
import {
  type ForeignState,
  openProducer,
  startProjector,
  stateOf,
} from '../../../support/registry-projector.ts'
import { needs, type Requirement } from '../../../support/requirements.ts'
import { apiKeyEvent, campaignEvent, pledgeEvent, sampleReward } from '../../../support/sample-events.ts'
import { schemaRegistries } from '../../../support/schema-registries.ts'

interface Field {
  name: string
  type: unknown
  default?: unknown
}

type RecordSchema = { fields: Field[] } & Record<string, unknown>

/** Before these fields were thought of. */
const olderSchemas: Record<EventType, object> = {
  campaign: changed('campaign', fields =>
    fields.filter(({ name }) => !['subtitle', 'location', 'image_url'].includes(name)),
  ),
  pledge: changed('pledge', fields => fields.filter(({ name }) => name !== 'reward_id')),
  'api-key': changed('api-key', fields => fields.filter(({ name }) => name !== 'issued_at')),
}

const note: Field = { name: 'note', type: ['null', { type: 'map', values: 'string' }], default: null }

/** With a field more, in the midst of the others, and with a status more, before most of the others. */
const newerSchemas: Record<EventType, object> = {
  campaign: changed('campaign', fields => withStatus(fields.toSpliced(3, 0, note), 'PAUSED')),
  pledge: changed('pledge', fields => withStatus(fields.toSpliced(2, 0, note), 'DISPUTED')),
  'api-key': changed('api-key', fields => withStatus([...fields, note], 'FROZEN')),
}

function changed(type: EventType, change: (fields: Field[]) => Field[]): object {
  const schema = structuredClone(schemas[type]) as RecordSchema
  return { ...schema, fields: change(schema.fields) }
}

function withStatus(fields: Field[], symbol: string): Field[] {
  return fields.map(field => {
    if (field.name !== 'status') return field
    const type = field.type as { symbols: string[] }
    return { ...field, type: { ...type, symbols: type.symbols.toSpliced(1, 0, symbol) } }
  })
}

/** In the newer producer's form: with a note, and with a status that only it knows if one is given. */
function newer(event: ChangeEvent, status?: string): ForeignState {
  const state = stateOf(event as StateEvent)
  return { ...state, data: { ...state.data, note: { why: 'new' }, ...(status !== undefined && { status }) } }
}

function own(event: ChangeEvent): ForeignState {
  return stateOf(event as StateEvent)
}

const lacking = { subtitle: null, location: null, image_url: null }
const rewards = [sampleReward({ reward_id: 'r', quantity_available: 10 })]

const campaigns = {
  byOlder: campaignEvent({ campaign_id: 'older', rewards, ...lacking }),
  byNewer: campaignEvent({ campaign_id: 'newer', rewards }),
  public: campaignEvent({ campaign_id: 'to-be-paused', rewards, ...lacking }),
  paused: campaignEvent({ campaign_id: 'to-be-paused', rewards, version: 2, status: 'UNKNOWN' }),
  draft: campaignEvent({ campaign_id: 'from-today', version: 1, status: 'DRAFT' }),
  launched: campaignEvent({ campaign_id: 'from-today', version: 2, ...lacking }),
}

function pledge(pledge_id: string, state: Partial<Parameters<typeof pledgeEvent>[0]> = {}): ChangeEvent {
  return pledgeEvent({ campaign_id: 'newer', pledge_id, ...state })
}

const pledges = {
  older: pledge('p1'),
  newer: pledge('p2', { reward_id: 'r' }),
  beforeDispute: pledge('p3', { backer_id: 'same', amount_minor: 40_000 }),
  disputed: pledge('p3', { backer_id: 'same', amount_minor: 40_000, version: 2, status: 'UNKNOWN' }),
  settled: pledge('p4', { backer_id: 'same', version: 2, status: 'COLLECTED' }),
  beforeSettled: pledge('p4', { backer_id: 'same', version: 1, status: 'UNKNOWN' }),
  ofOlder: pledge('p5', { campaign_id: 'older', reward_id: 'r' }),
}

const keys = {
  older: apiKeyEvent({ key: 'k1', account_id: 'acc', issued_at: null }),
  frozen: apiKeyEvent({ key: 'k2', account_id: 'acc', status: 'UNKNOWN' }),
}

/** The same events as today's schemas have them. */
const asOfToday = [campaigns, pledges, keys].flatMap(named => Object.values<ChangeEvent>(named))

describe.each(schemaRegistries)('with schemas in a registry: $name', ({ requirement, open }) => {
  let needed: Requirement
  let server: { url: string; close(): Promise<void> } | undefined
  let model: ModelTables
  let databases: Databases
  let journal: string
  let writer: EventWriter
  let reader: EventReader

  beforeAll(async () => {
    needed = await requirement()
    if (needed.isMet) server = await open()
    model = await openModelTables()
  }, 300_000)

  afterAll(async () => {
    await model.dispose()
    await server?.close()
  })

  beforeEach(async context => {
    needs(context, needed)
    databases = await model.freshDatabases()
    const directory = await mkdtemp(join(tmpdir(), 'pledgeview-evolution-'))
    journal = join(directory, 'journal.sqlite')
    writer = await openJournalWriter(journal)
    reader = await openJournalReader(journal, { consumer: 'projector' })
    return async () => {
      await reader.close()
      await writer.close()
      await rm(directory, { recursive: true })
      await model.drop(databases)
    }
  })

  function client(): SchemaRegistry {
    return createSchemaRegistry({ url: server?.url ?? '' })
  }

  /** What the three producers write, turn by turn. They register from the oldest on, as they came into being. */
  async function written(): Promise<NewRecord[]> {
    const prefix = `${randomUUID()}.`
    const names = { topicName: (topic: string) => `${prefix}${topic}` }
    const byOlder = await openProducer(client(), { schemas: olderSchemas, ...names })
    const byToday = await openProducer(client(), { schemas, ...names })
    const byNewer = await openProducer(client(), { schemas: newerSchemas, ...names })
    return [
      byOlder(own(campaigns.public)),
      byNewer(newer(campaigns.byNewer)),
      byToday(own(campaigns.draft)),
      byOlder(own(campaigns.byOlder)),
      byNewer(newer(pledges.beforeDispute)),
      byOlder(own(pledges.older)),
      byNewer(newer(pledges.newer)),
      byNewer(newer(pledges.beforeSettled, 'DISPUTED')),
      byNewer(newer(campaigns.paused, 'PAUSED')),
      byOlder(own(pledges.settled)),
      byNewer(newer(pledges.disputed, 'DISPUTED')),
      byOlder(own(campaigns.launched)),
      byToday(own(pledges.ofOlder)),
      byOlder(own(keys.older)),
      byNewer(newer(keys.frozen, 'FROZEN')),
    ]
  }

  test('producers of three versions side by side make the rows that one of today would have made', async () => {
    const records = await written()
    await writer.append(records)
    const { tables } = model
    const projector = startProjector({ reader, tables, databases, schemaRegistry: client() })
    await projector.drained()
    await projector.stop()
    expect(projector.service.health().rejects).toBe(0)
    const reading = await readViews(tables, databases)
    expect(reading).toEqual(expectedReading(readModelOf(asOfToday)))
    // Said once more without the model: what tomorrow calls PAUSED is gone, what it calls DISPUTED is not in any sum.
    expect(reading.campaigns).toMatchObject([
      { campaign_id: 'from-today', subtitle: null },
      { campaign_id: 'newer', subtitle: 'A subtitle', pledged_amount_text: '30', backer_count_text: '3' },
      { campaign_id: 'older', subtitle: null, pledged_amount_text: '10', backer_count_text: '1' },
    ])
    expect(
      await tables.rows({ query: `SELECT api_key FROM ${databases.base}.api_keys FINAL WHERE is_active` }),
    ).toEqual([{ api_key: 'k1' }])
  })
})
