/**
 * Private data is where it has to be, and nowhere else. Worlds full of recognisable private values are projected. Then every row of every
 * table of both databases is searched, including superseded rows, and all log output. Deleted and replaced content leaves the disk within
 * a bound, although events keep coming, which holds back ClickHouse's own merges.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { CampaignState, ChangeEvent } from '../../../contracts/events/event.ts'
import type { NewRecord } from '../../../services/log/port.ts'
import { qualified } from '../../../services/tables/generation-log.ts'
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

// A busy machine is no failure.
const soon = { timeout: 90_000, interval: 100 }
vi.setConfig({ testTimeout: 300_000 })

describe('private values', () => {
  const world = useProjector()
  let projector: RunningProjector
  let logged: string

  beforeEach(() => {
    logged = ''
    projector = world.start({
      logger: pino({ level: 'trace' }, { write: line => (logged += line) }),
      settings: { PLEDGEVIEW_SUPERSEDED_MS_MAX: '2000' },
    })
  })

  async function project(events: readonly ChangeEvent[], more: readonly NewRecord[] = []): Promise<void> {
    await world.writer.append([...events.map(newRecordOf), ...more])
    await projector.drained()
  }

  const append = (events: readonly ChangeEvent[]) => world.writer.append(events.map(newRecordOf))

  /** The tables and views that contain the text in any column of any row. */
  async function placesOf(text: string): Promise<string[]> {
    const places = await tablesWith(world.tables, [text])
    return places
      .map(place => place.split('.'))
      .map(([database, table]) => `${database === world.databases.views ? 'views' : 'model'}.${table}`)
      .toSorted()
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

  test('the search finds what is public, so an empty result proves something; creators’ ids are not in the views', async () => {
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
    expect(await placesOf('SHOWN-id')).toEqual(['model.campaign_ledger', 'model.campaigns'])
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
        pledgeEvent({ campaign_id: 'a', pledge_id: 'ACTIVE', version: 2, status: 'REFUNDED' }),
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
    // A pledge that no longer counts keeps not even the hash of its backer.
    const query = `SELECT backer_hash, amount_minor FROM ${world.databases.ledger}.pledge_ledger
      WHERE campaign_id = 'a' AND pledge_id = 'ACTIVE'`
    await expect.poll(() => world.tables.rows({ query }), soon).toEqual([{ backer_hash: 0, amount_minor: 0 }])
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
    await expect.poll(() => placesOf('CONTACT'), soon).toEqual([])
    expect(logged).not.toMatch(/CONTACT|INTEGRATION/)
  })

  /** Every pledge of the stream makes new parts, in the ledger and through the fold in the read tables. */
  function startStream(): () => Promise<void> {
    let isOver = false
    const streaming = (async () => {
      await append([campaignEvent({ campaign_id: 'stream' })])
      for (let n = 0; !isOver; n++) {
        await append([pledgeEvent({ campaign_id: 'stream', pledge_id: `p${n}` })])
        await delay(100)
      }
    })()
    // A test that failed leaves it, and its journal is closed.
    streaming.catch(() => {})
    return async () => {
      isOver = true
      await streaming
    }
  }

  /**
   * Puts what the tables have into one large part each, as on a platform that has run for long. ClickHouse merges parts
   * of similar size, so it does not merge this one with the small parts of the stream.
   */
  async function makeLargeParts(): Promise<void> {
    for (const table of ['campaign_ledger', 'campaigns', 'api_key_ledger', 'pledge_ledger']) {
      const name = `${qualified(table, world.databases)}`
      const text = { campaign_ledger: 'description', campaigns: 'description', pledge_ledger: 'reward_id' }[
        table
      ]
      const key = table === 'api_key_ledger' ? 'api_key' : 'campaign_id'
      await world.tables.run({
        query: `INSERT INTO ${name} (${key}, ${text ?? 'secret_hash'}) SELECT concat('bulk', toString(number)), randomPrintableASCII(200) FROM numbers(20000)`,
      })
      await world.tables.run({ query: `OPTIMIZE TABLE ${name} FINAL` })
    }
  }

  /** Rows of a campaign, superseded ones included: its pledges that count, and its days. */
  async function rowsOf(campaignId: string): Promise<{ pledges: number; days: number }> {
    const { base, ledger } = world.databases
    const [rows] = await world.tables.rows<{ pledges: number; days: number }>({
      query: `SELECT (SELECT count() FROM ${ledger}.pledge_ledger WHERE counts AND campaign_id = {id:String}) AS pledges,
                (SELECT count() FROM ${base}.campaign_days WHERE campaign_id = {id:String}) AS days`,
      query_params: { id: campaignId },
    })
    return rows ?? { pledges: 0, days: 0 }
  }

  test('deleted, hidden and replaced content is gone within the bound, whatever ClickHouse merges by itself', async () => {
    const stopStream = startStream()
    await append([
      ...['deleted', 'hidden', 'changed'].map(campaign_id =>
        campaignEvent({ ...stateFull('EARLIER'), campaign_id }),
      ),
      ...['deleted', 'hidden'].map(campaign_id => pledgeEvent({ campaign_id, pledge_id: 'p' })),
      apiKeyEvent({
        key: 'k',
        account_id: 'acc',
        integration: { name: 'EARLIER', url: 'https://x.example', contact_email: 'x@x.example' },
      }),
    ])
    const inTables = ['model.api_key_ledger', 'model.campaign_ledger', 'model.campaigns']
    await expect.poll(() => placesOf('EARLIER'), soon).toEqual(expect.arrayContaining(inTables))
    await expect.poll(async () => (await rowsOf('deleted')).days, soon).toBeGreaterThan(0)
    await makeLargeParts()
    await append([
      campaignTombstone('deleted'),
      campaignEvent({ ...stateFull('EARLIER'), campaign_id: 'hidden', status: 'SUSPENDED', version: 2 }),
      campaignEvent({ campaign_id: 'changed', description: 'LATER', version: 2 }),
      pledgeTombstone('deleted', 'p'),
      pledgeEvent({ campaign_id: 'hidden', pledge_id: 'p', status: 'REFUNDED', version: 2 }),
      { type: 'api-key', key: 'k', data: null },
    ])
    await vi.waitFor(async () => {
      expect(await placesOf('EARLIER')).toEqual([])
      expect(await rowsOf('deleted')).toEqual({ pledges: 0, days: 0 })
      expect((await rowsOf('hidden')).pledges).toBe(0)
    }, soon)
    // The stream, what is new, and the history of what was hidden were not lost on the way.
    expect(await placesOf('LATER')).toEqual(expect.arrayContaining(inTables.slice(1)))
    expect((await rowsOf('stream')).pledges).toBeGreaterThan(5)
    expect((await rowsOf('hidden')).days).toBeGreaterThan(0)
    await stopStream()
  })
})
