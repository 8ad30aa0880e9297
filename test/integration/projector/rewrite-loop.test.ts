/** Deleted and replaced content leaves the disk within a bound, although events keep coming, which holds back ClickHouse's own merges. */

import { afterEach, describe, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { qualified } from '../../../services/tables/generations.ts'
import {
  apiKeyEvent,
  campaignEvent,
  campaignTombstone,
  newRecordOf,
  pledgeEvent,
  pledgeTombstone,
} from '../../support/events/sample-events.ts'
import { useProjector } from '../../support/projector/running-projector.ts'

// A busy machine is no failure.
const soon = { timeout: 90_000, interval: 100 }
vi.setConfig({ testTimeout: 300_000 })

describe('while pledges keep coming', () => {
  const world = useProjector()
  let stopStream: () => Promise<void>

  afterEach(() => stopStream())

  function start(settings: Record<string, string>): void {
    world.start({ settings })
    const streamed = new AbortController()
    const streaming = stream(streamed.signal)
    stopStream = () => {
      streamed.abort()
      return streaming
    }
  }

  /** Every pledge of the stream makes new parts, in the ledger and through the fold in the read tables. */
  async function stream(signal: AbortSignal): Promise<void> {
    await append([campaignEvent({ campaign_id: 'stream' })])
    for (let n = 0; !signal.aborted; n++) {
      await append([pledgeEvent({ campaign_id: 'stream', pledge_id: `p${n}` })])
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  }

  const append = (events: readonly ChangeEvent[]) => world.writer.append(events.map(newRecordOf))

  /** In how many rows of active parts the text stands, superseded ones included, by table. */
  async function rowsWith(text: string): Promise<Record<string, number>> {
    const rows = await world.tables.rows<{ place: string; rows: number }>({
      query: ['campaign_ledger', 'campaigns', 'api_key_ledger']
        .map(
          table =>
            `SELECT '${table}' AS place, count() AS rows FROM ${qualified(table, world.databases)} WHERE position(toJSONString(tuple(*)), {text:String}) > 0`,
        )
        .join(' UNION ALL '),
      query_params: { text },
    })
    return Object.fromEntries(rows.filter(row => row.rows > 0).map(row => [row.place, row.rows]))
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

  /** Rows of pledges that count, superseded ones included. */
  async function countingPledges(campaignId: string): Promise<number> {
    const [row] = await world.tables.rows<{ rows: number }>({
      query: `SELECT count() AS rows FROM ${world.databases.ledger}.pledge_ledger WHERE counts AND campaign_id = {id:String}`,
      query_params: { id: campaignId },
    })
    return row?.rows ?? 0
  }

  /** Rows of the history. */
  async function daysOf(campaignId: string): Promise<number> {
    const [row] = await world.tables.rows<{ rows: number }>({
      query: `SELECT count() AS rows FROM ${world.databases.base}.campaign_days WHERE campaign_id = {id:String}`,
      query_params: { id: campaignId },
    })
    return row?.rows ?? 0
  }

  test('deleted, hidden and replaced content is gone within the bound, whatever ClickHouse merges by itself', async () => {
    start({ PLEDGEVIEW_SUPERSEDED_MS_MAX: '2000' })
    await append([
      campaignEvent({ campaign_id: 'deleted', description: 'EARLIER' }),
      campaignEvent({ campaign_id: 'hidden', description: 'EARLIER' }),
      campaignEvent({ campaign_id: 'changed', description: 'EARLIER' }),
      pledgeEvent({ campaign_id: 'deleted', pledge_id: 'p' }),
      pledgeEvent({ campaign_id: 'hidden', pledge_id: 'p' }),
      apiKeyEvent({
        key: 'k',
        account_id: 'acc',
        integration: { name: 'EARLIER', url: 'https://x.example', contact_email: 'x@x.example' },
      }),
    ])
    await vi.waitFor(async () => {
      expect(await rowsWith('EARLIER')).toEqual({ campaign_ledger: 3, campaigns: 3, api_key_ledger: 1 })
      expect(await daysOf('deleted')).toBeGreaterThan(0)
    }, soon)
    await makeLargeParts()
    await append([
      campaignTombstone('deleted'),
      campaignEvent({ campaign_id: 'hidden', description: 'EARLIER', status: 'SUSPENDED', version: 2 }),
      campaignEvent({ campaign_id: 'changed', description: 'LATER', version: 2 }),
      pledgeTombstone('deleted', 'p'),
      pledgeEvent({ campaign_id: 'hidden', pledge_id: 'p', status: 'REFUNDED', version: 2 }),
      { type: 'api-key', key: 'k', data: null },
    ])
    await vi.waitFor(async () => {
      expect(await rowsWith('EARLIER')).toEqual({})
      expect(await countingPledges('deleted')).toBe(0)
      expect(await countingPledges('hidden')).toBe(0)
      expect(await daysOf('deleted')).toBe(0)
    }, soon)
    expect(await rowsWith('LATER')).toEqual({ campaign_ledger: 1, campaigns: 1 })
    // The stream and the history of what was hidden were not lost on the way.
    expect(await countingPledges('stream')).toBeGreaterThan(5)
    expect(await daysOf('hidden')).toBeGreaterThan(0)
  })
})
