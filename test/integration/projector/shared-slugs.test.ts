/** Two public campaigns with one slug: the API finds one of them by it, so an operator has to learn of it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statusOf } from '../../../services/projector/status.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import type { Databases } from '../../../services/tables/port.ts'
import { campaignEvent, newRecordOf } from '../../support/events/sample-events.ts'
import { type ModelTables, openModelTables } from '../../support/projector/model-tables.ts'
import {
  openTestJournal,
  type RunningProjector,
  startProjector,
  type TestJournal,
} from '../../support/projector/running-projector.ts'

const metrics = createMetrics()
let model: ModelTables
let databases: Databases
let log: TestJournal
let projector: RunningProjector

const campaign = (campaign_id: string, slug: string, version = 1, status: 'LIVE' | 'DRAFT' = 'LIVE') =>
  newRecordOf(campaignEvent({ campaign_id, slug, version, status }))

beforeAll(async () => {
  model = await openModelTables()
  databases = await model.freshDatabases()
  log = await openTestJournal()
  await log.writer.append([
    campaign('c2', 'lanterns'),
    campaign('c1', 'lanterns'),
    campaign('c3', 'boats'),
    campaign('c4', 'boats', 1, 'DRAFT'),
  ])
  projector = startProjector({ reader: log.reader, tables: model.tables, databases, metrics })
})

afterAll(async () => {
  await projector.stop()
  await log.close()
  await model.dispose()
})

describe('a slug that several public campaigns have', () => {
  const shared = { count: 1, examples: [{ slug: 'lanterns', campaign_ids: ['c1', 'c2'] }] }

  test('is in the metrics of the leader', async () => {
    await projector.drained()
    await projector.service.beforeScrape()
    expect(await metrics.registry.metrics()).toContain('\npledgeview_shared_slugs 1\n')
  })

  test('is in the status, with the campaign that the API shows as the first one', async () => {
    await projector.drained()
    const { tables } = await statusOf({ projector: projector.service, tables: model.tables, databases })
    expect(tables?.shared_slugs).toEqual(shared)
  })
})
