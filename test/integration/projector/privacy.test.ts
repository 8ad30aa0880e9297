/**
 * Private data is where it has to be, and nowhere else. Worlds full of recognisable private values are projected. Then every row of every
 * table of both databases is searched, including superseded rows, and all log output.
 */
import { pino } from 'pino'
import { beforeEach, describe, expect, test } from 'vitest'
import type { CampaignState, ChangeEvent } from '../../../contracts/events/event.ts'
import type { NewRecord } from '../../../services/log/port.ts'
import { findDeletedDays, removeRows } from '../../../services/tables/deleted.ts'
import { tablesWith } from '../../support/events/find-texts.ts'
import {
  apiKeyEvent,
  campaignEvent,
  campaignTombstone,
  newRecordOf,
  pledgeEvent,
  pledgeTombstone,
  sampleReward,
} from '../../support/events/sample-events.ts'
import { type RunningProjector, useProjector } from '../../support/projector/running-projector.ts'

describe('private values', () => {
  const world = useProjector()
  let projector: RunningProjector
  let logged: string

  beforeEach(() => {
    logged = ''
    projector = world.start({ logger: pino({ level: 'trace' }, { write: line => (logged += line) }) })
  })

  async function project(events: readonly ChangeEvent[], more: readonly NewRecord[] = []): Promise<void> {
    await world.writer.append([...events.map(newRecordOf), ...more])
    await projector.drained()
  }

  /** The tables and views that contain the text in any column of any row. */
  async function placesOf(text: string): Promise<string[]> {
    const places = await tablesWith(world.tables, [text])
    return places
      .map(place => place.split('.'))
      .map(([database, table]) => `${database === world.databases.views ? 'views' : 'model'}.${table}`)
      .toSorted()
  }

  /** The history takes over a change after it was folded (days.ts). */
  async function placesOnceMerged(text: string): Promise<string[]> {
    await mergeAll()
    return placesOf(text)
  }

  /** Does what the leading projector does within its bounds (rewrite-loop.test.ts). */
  async function mergeAll(): Promise<void> {
    const engines = await world.tables.rows<{ name: string }>({
      query: `SELECT concat(database, '.', name) AS name FROM system.tables
              WHERE database IN {names:Array(String)} AND engine LIKE '%MergeTree'`,
      query_params: { names: Object.values(world.databases) },
    })
    for (const { name } of engines) {
      await world.tables.run({ query: `OPTIMIZE TABLE ${name} FINAL` })
    }
    const deleted = await findDeletedDays(world.tables, world.databases)
    await removeRows(world, 'campaign_days', deleted)
  }

  function stateFull(text: string): Omit<CampaignState, 'campaign_id' | 'version' | 'status'> {
    const { campaign_id, version, status, ...rest } = campaignEvent({
      campaign_id: 'x',
      slug: `${text}-slug`,
      url: `https://${text}.example`,
      title: text,
      subtitle: text,
      category: text,
      subcategory: text,
      location: text,
      image_url: `https://${text}.example`,
      campaign_type: text,
      project_type: text,
      tags: [text],
      creator: {
        creator_id: `${text}-id`,
        name: text,
        profile_url: `https://${text}.example`,
        avatar_url: `https://${text}.example`,
      },
      description: text,
      risks: text,
      rewards: [sampleReward({ reward_id: text, title: text, description: text })],
    }).data as CampaignState
    return rest
  }

  test('the search finds what is public, so an empty result proves something', async () => {
    await project([campaignEvent({ ...stateFull('SHOWN'), campaign_id: 'a' })])
    expect(await placesOf('SHOWN')).toEqual([
      // The history keeps the category.
      'model.campaign_days',
      'model.campaign_ledger',
      'model.campaign_pages',
      'model.campaigns',
      'model.history_days',
      'model.history_moves',
      'views.campaign_days',
      'views.campaigns',
      'views.categories',
      'views.category_funding_days',
      'views.rewards',
    ])
  })

  test('backer ids are in no table but that of rejects, and in no log line, in any state of the pledges', async () => {
    const statuses = ['UNKNOWN', 'PENDING', 'ACTIVE', 'COLLECTED', 'CANCELLED', 'REFUNDED', 'FAILED'] as const
    await project(
      [
        campaignEvent({ campaign_id: 'a' }),
        campaignEvent({ campaign_id: 'hidden', status: 'DRAFT' }),
        ...['a', 'hidden', 'unknown'].flatMap(campaign_id =>
          statuses.map(status =>
            pledgeEvent({ campaign_id, pledge_id: status, status, backer_id: `BACKER-${status}` }),
          ),
        ),
        pledgeEvent({ campaign_id: 'a', pledge_id: 'deleted', backer_id: 'BACKER-deleted' }),
        pledgeTombstone('a', 'deleted'),
      ],
      [
        // The log names the reason of a reject, but not its content.
        newRecordOf(
          pledgeEvent({ campaign_id: 'a', pledge_id: 'r', backer_id: 'BACKER-rejected', amount_minor: -1 }),
        ),
        { topic: 'pledges', key: Buffer.from('a/s'), value: Buffer.from('BACKER-garbage') },
        // A fault of JSON quotes what stands there.
        ...[
          '{"pledge_id":"p","campaign_id":"a","backer_id":{"email":"BACKER-json"}}',
          '{"backer_id":"BACKER-json",x}',
          '{"BACKER-json":1}',
        ].map(
          (value, n): NewRecord => ({
            topic: 'pledges',
            key: Buffer.from(`a/json${n}`),
            value: Buffer.from(value),
          }),
        ),
      ],
    )
    // A reject keeps the original bytes, for the operator alone.
    expect(await placesOf('BACKER')).toEqual(['model.rejects'])
    expect(logged).toContain('a record was rejected')
    expect(logged).not.toContain('BACKER')
  })

  test('a pledge that no longer counts keeps not even the hash of its backer', async () => {
    await project([campaignEvent({ campaign_id: 'a' }), pledgeEvent({ campaign_id: 'a', pledge_id: 'p' })])
    await project([pledgeEvent({ campaign_id: 'a', pledge_id: 'p', version: 2, status: 'REFUNDED' })])
    await mergeAll()
    expect(
      await world.tables.rows({
        query: `SELECT backer_hash, amount_minor FROM ${world.databases.ledger}.pledge_ledger`,
      }),
    ).toEqual([{ backer_hash: 0, amount_minor: 0 }])
  })

  test('texts of campaigns that are not public are in no table', async () => {
    const statuses = ['UNKNOWN', 'DRAFT', 'SUBMITTED', 'APPROVED', 'SUSPENDED'] as const
    await project([
      campaignEvent({ campaign_id: 'shown' }),
      ...statuses.map(status =>
        campaignEvent({ ...stateFull(`UNLAUNCHED-${status}`), campaign_id: status, status }),
      ),
      ...statuses.map(status => pledgeEvent({ campaign_id: status, pledge_id: 'p', reward_id: 'tier' })),
    ])
    expect(await placesOf('UNLAUNCHED')).toEqual([])
    expect(logged).not.toContain('UNLAUNCHED')
  })

  test.each([
    [
      'suspended',
      campaignEvent({ ...stateFull('AFTER'), campaign_id: 'a', version: 2, status: 'SUSPENDED' }),
    ],
    ['deleted', campaignTombstone('a')],
  ])(
    'texts of a campaign that was %s leave the views at once, and every table with the next merge',
    async (_, event) => {
      await project([
        campaignEvent({ ...stateFull('WITHDRAWN'), campaign_id: 'a' }),
        pledgeEvent({ campaign_id: 'a', pledge_id: 'p' }),
      ])
      await project([event])
      const places = await placesOf('WITHDRAWN')
      expect(places.filter(place => place.startsWith('views.'))).toEqual([])
      await expect.poll(() => placesOnceMerged('WITHDRAWN')).toEqual([])
      expect(await placesOf('AFTER')).toEqual([])
    },
  )

  test('an earlier text of a public campaign is gone after the next merge', async () => {
    await project([campaignEvent({ ...stateFull('EARLIER'), campaign_id: 'a' })])
    await project([campaignEvent({ campaign_id: 'a', version: 2 })])
    await expect.poll(() => placesOnceMerged('EARLIER')).toEqual([])
  })

  test('creators’ ids are not in the views', async () => {
    const { creator } = stateFull('x')
    await project([campaignEvent({ campaign_id: 'a', creator: { ...creator, creator_id: 'CREATOR-ID' } })])
    expect(await placesOf('CREATOR-ID')).toEqual(['model.campaign_ledger', 'model.campaigns'])
  })

  test('contact addresses are in the key ledger and in no other table, and are deleted with the key', async () => {
    const integration = {
      name: 'INTEGRATION',
      url: 'https://INTEGRATION.example',
      contact_email: 'CONTACT@x.example',
    }
    await project([
      apiKeyEvent({ key: 'k1', account_id: 'acc', integration }),
      apiKeyEvent({ key: 'k2', account_id: 'acc', integration, status: 'REVOKED' }),
    ])
    expect(await placesOf('CONTACT')).toEqual(['model.api_key_ledger'])
    expect(await placesOf('INTEGRATION')).toEqual(['model.api_key_ledger'])
    await project(['k1', 'k2'].map(key => ({ type: 'api-key', key, data: null }) as const))
    await mergeAll()
    expect(await placesOf('CONTACT')).toEqual([])
    expect(logged).not.toMatch(/CONTACT|INTEGRATION/)
  })
})
