/** Withdrawn content leaves the disk within a bound, although events keep coming, which holds back ClickHouse's own merges. */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../../contracts/events/event.ts'
import { openJournalReader, openJournalWriter } from '../../../../services/log/local/journal.ts'
import type { EventWriter } from '../../../../services/log/port.ts'
import { createProjectorService } from '../../../../services/projector/service.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import { createMetrics } from '../../../../services/runtime/ops/metrics.ts'
import { qualified } from '../../../../services/tables/generations.ts'
import type { Databases } from '../../../../services/tables/port.ts'
import { countWithdrawn, readPartsStates } from '../../../../services/tables/superseded.ts'
import {
  apiKeyEvent,
  campaignEvent,
  campaignTombstone,
  newRecordOf,
  pledgeEvent,
  pledgeTombstone,
} from '../../../support/events/sample-events.ts'
import {
  createIngest,
  hashBacker,
  type ModelTables,
  openModelTables,
} from '../../../support/projector/model-tables.ts'

// A busy machine is no failure.
const soon = { timeout: 45_000, interval: 100 }
vi.setConfig({ testTimeout: 150_000 })

let model: ModelTables

beforeAll(async () => {
  model = await openModelTables()
})

afterAll(() => model.dispose())

describe('while pledges keep coming', () => {
  let databases: Databases
  let directory: string
  let writer: EventWriter
  let stop: () => Promise<void>

  beforeEach(async () => {
    databases = await model.freshDatabases()
    directory = await mkdtemp(join(tmpdir(), 'pledgeview-rewrite-'))
    const journal = join(directory, 'journal.sqlite')
    writer = await openJournalWriter(journal)
  })

  afterEach(async () => {
    await stop()
    await writer.close()
    await model.drop(databases)
    await rm(directory, { recursive: true, force: true })
  })

  async function start(environment: Record<string, string>): Promise<void> {
    const reader = await openJournalReader(join(directory, 'journal.sqlite'), { consumer: 'projector' })
    const abort = new AbortController()
    const service = createProjectorService({
      reader,
      tables: model.tables,
      databases,
      config: readConfig({ PLEDGEVIEW_FOLD_MS_MAX: '30000', ...environment }),
      hashBacker,
      run: 'run',
      metrics: createMetrics(),
      logger: pino({ level: 'silent' }),
      now: Date.now,
      monotonicMs: () => performance.now(),
      random: () => 0,
    })
    const running = service.run(abort.signal)
    const streaming = stream(abort.signal)
    stop = async () => {
      abort.abort()
      await Promise.all([running, streaming])
      await reader.close()
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

  const append = (events: readonly ChangeEvent[]) => writer.append(events.map(newRecordOf))

  /** In how many rows of active parts the text stands, superseded ones included, by table. */
  async function rowsWith(text: string): Promise<Record<string, number>> {
    const rows = await model.tables.rows<{ place: string; rows: number }>({
      query: ['campaign_ledger', 'campaigns', 'api_key_ledger']
        .map(
          table =>
            `SELECT '${table}' AS place, count() AS rows FROM ${qualified(table, databases)} WHERE position(toJSONString(tuple(*)), {text:String}) > 0`,
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
      const name = `${qualified(table, databases)}`
      const text = { campaign_ledger: 'description', campaigns: 'description', pledge_ledger: 'reward_id' }[
        table
      ]
      const key = table === 'api_key_ledger' ? 'api_key' : 'campaign_id'
      await model.tables.run({
        query: `INSERT INTO ${name} (${key}, ${text ?? 'secret_hash'}) SELECT concat('bulk', toString(number)), randomPrintableASCII(200) FROM numbers(20000)`,
      })
      await model.tables.run({ query: `OPTIMIZE TABLE ${name} FINAL` })
    }
  }

  /** Rows of pledges that count, superseded ones included. */
  async function countingPledges(campaignId: string): Promise<number> {
    const [row] = await model.tables.rows<{ rows: number }>({
      query: `SELECT count() AS rows FROM ${databases.ledger}.pledge_ledger WHERE counts AND campaign_id = {id:String}`,
      query_params: { id: campaignId },
    })
    return row?.rows ?? 0
  }

  test('withdrawn campaigns, pledges and keys are gone within two looks, whatever ClickHouse merges by itself', async () => {
    await start({ PLEDGEVIEW_WITHDRAWN_CHECK_MS: '1000' })
    await append([
      campaignEvent({ campaign_id: 'deleted', description: 'WITHDRAWN' }),
      campaignEvent({ campaign_id: 'hidden', description: 'WITHDRAWN' }),
      pledgeEvent({ campaign_id: 'deleted', pledge_id: 'p' }),
      pledgeEvent({ campaign_id: 'hidden', pledge_id: 'p' }),
      apiKeyEvent({
        key: 'k',
        account_id: 'acc',
        integration: { name: 'WITHDRAWN', url: 'https://x.example', contact_email: 'x@x.example' },
      }),
    ])
    await vi.waitFor(
      async () =>
        expect(await rowsWith('WITHDRAWN')).toEqual({ campaign_ledger: 2, campaigns: 2, api_key_ledger: 1 }),
      soon,
    )
    await makeLargeParts()
    await append([
      campaignTombstone('deleted'),
      campaignEvent({ campaign_id: 'hidden', description: 'WITHDRAWN', status: 'SUSPENDED', version: 2 }),
      pledgeTombstone('deleted', 'p'),
      pledgeEvent({ campaign_id: 'hidden', pledge_id: 'p', status: 'REFUNDED', version: 2 }),
      { type: 'api-key', key: 'k', data: null },
    ])
    await vi.waitFor(async () => {
      expect(await rowsWith('WITHDRAWN')).toEqual({})
      expect(await countingPledges('deleted')).toBe(0)
      expect(await countingPledges('hidden')).toBe(0)
    }, soon)
    // The stream was not lost on the way.
    expect(await countingPledges('stream')).toBeGreaterThan(5)
  })

  test('an earlier text of a campaign is gone within its own bound', async () => {
    await start({ PLEDGEVIEW_WITHDRAWN_CHECK_MS: '500', PLEDGEVIEW_SUPERSEDED_MS_MAX: '2000' })
    await append([campaignEvent({ campaign_id: 'a', description: 'EARLIER' })])
    await vi.waitFor(
      async () => expect(await rowsWith('EARLIER')).toEqual({ campaign_ledger: 1, campaigns: 1 }),
      soon,
    )
    await makeLargeParts()
    await append([campaignEvent({ campaign_id: 'a', description: 'LATER', version: 2 })])
    await vi.waitFor(async () => expect(await rowsWith('EARLIER')).toEqual({}), soon)
    expect(await rowsWith('LATER')).toEqual({ campaign_ledger: 1, campaigns: 1 })
  })
})

describe('the look for withdrawn content', () => {
  test('finds what was withdrawn, in whatever order it came, and nothing else', async () => {
    const databases = await model.freshDatabases()
    const ingest = createIngest(model.tables, databases)
    await model.tables.run({ query: `SYSTEM STOP MERGES ${databases.ledger}.pledge_ledger` })
    const pledge = (pledge_id: string, version: number, status: 'ACTIVE' | 'PENDING' | 'CANCELLED') =>
      pledgeEvent({ campaign_id: 'a', pledge_id, version, status })
    await ingest([
      pledge('withdrawn', 1, 'ACTIVE'),
      pledge('late', 2, 'CANCELLED'),
      pledge('begun', 1, 'PENDING'),
      pledge('again', 1, 'ACTIVE'),
      pledge('alone', 1, 'CANCELLED'),
      pledge('changed', 1, 'ACTIVE'),
    ])
    await ingest([
      pledge('withdrawn', 2, 'CANCELLED'),
      pledge('late', 1, 'ACTIVE'),
      pledge('begun', 2, 'ACTIVE'),
      pledge('again', 2, 'CANCELLED'),
      pledge('changed', 2, 'ACTIVE'),
    ])
    await ingest([pledge('again', 3, 'ACTIVE')])
    const state = (await readPartsStates(model.tables, databases)).get('pledge_ledger')
    if (!state) throw new Error('the table has no parts')
    expect(state).toMatchObject({ parts: 3, otherRows: 6 })
    expect(await countWithdrawn(model.tables, databases, 'pledge_ledger', state)).toBe(2)
    // When most rows are new, it does not look.
    const many = { ...state, otherRows: 5_000_000 }
    expect(await countWithdrawn(model.tables, databases, 'pledge_ledger', many)).toBeUndefined()
    await model.drop(databases)
  })
})
