/**
 * The read model in a fresh ClickHouse. Tests put events in, read exactly what the views say, and compare that with the plain
 * model (model.ts).
 */
import { currencyDigits } from '../../../contracts/events/currencies.ts'
import type { CampaignState, ChangeEvent } from '../../../contracts/events/event.ts'
import { copiedColumns, ledgerColumns } from '../../../contracts/tables/campaign-columns.ts'
import type { LogRecord } from '../../../services/log/port.ts'
import { createFoldWorker } from '../../../services/projector/fold/fold-worker.ts'
import { backerHasher } from '../../../services/projector/ingest/backer-hash.ts'
import {
  addDelivery,
  batchLogInsert,
  emptyBatch,
  ledgerInserts,
} from '../../../services/projector/ingest/batch.ts'
import { createDecoder } from '../../../services/projector/ingest/decode.ts'
import { type Config, readConfig } from '../../../services/runtime/config.ts'
import { generationOf } from '../../../services/tables/generation-log.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { migrate } from '../../../services/tables/schema/migrate.ts'
import { openOwnTables } from '../clickhouse/clickhouse.ts'
import { byBytes, type CampaignReading, majorText, percentText, type ReadModel } from '../events/model.ts'
import { newRecordOf } from '../events/sample-events.ts'

export const hashBacker = backerHasher('0123456789abcdef'.repeat(4))
/** Digits of the platform currency that the tests fold with. */
export const platformDigits = 2

export type ModelTables = Awaited<ReturnType<typeof openModelTables>>

export async function openModelTables() {
  const { tables, clickHouse, close } = await openOwnTables()
  let count = 0
  const empty: Databases[] = []
  return {
    tables,
    clickHouse,
    /** Migrated databases with nothing in them: new ones, or some that were given back. */
    async freshDatabases(): Promise<Databases> {
      const again = empty.shift()
      if (again) return again
      count++
      const databases = generationOf({ base: `model_${count}`, views: `views_${count}` }, 1)
      await migrate(tables, databases)
      return databases
    },
    /** Empties them, for another test: it takes a fifth of the time of a migration. Nobody may work on them, or have changed a table. */
    async giveBack(databases: Databases): Promise<void> {
      const { base, ledger, read } = databases
      const names = await tables.rows<{ name: string }>({
        query: `SELECT concat(database, '.', name) AS name FROM system.tables WHERE database IN {databases:Array(String)}
                AND engine LIKE '%MergeTree' AND total_rows > 0 AND name NOT IN ('migrations', 'generation_log')`,
        query_params: { databases: [base, ledger, read] },
      })
      await Promise.all(names.map(({ name }) => tables.run({ query: `TRUNCATE TABLE ${name} SYNC` })))
      await tables.run({ query: 'SYSTEM START MERGES' })
      empty.push(databases)
    },
    dispose: close,
  }
}

/** Writes events to ledger and batch log, one batch per call, like one run of a projector. */
export function createIngest(
  tables: Tables,
  databases: Databases,
  projector = 'test',
  appendedAt: () => number = Date.now,
): (events: readonly ChangeEvent[]) => Promise<void> {
  const decode = createDecoder()
  let sequence = 0
  return async events => {
    const batch = emptyBatch('test', hashBacker)
    const records = events.map(
      (event, offset): LogRecord => ({
        ...newRecordOf(event),
        ...{ partition: 0, offset, appendedAt: appendedAt() },
      }),
    )
    addDelivery(batch, { assignment: 'test', records, positions: [] }, decode)
    if (batch.rejects.length > 0) throw new Error(`rejected: ${batch.rejects[0]?.reason}`)
    await Promise.all(ledgerInserts(batch, databases).map(insert => tables.insert(insert)))
    sequence++
    await tables.insert(batchLogInsert(batch, databases, { projector, sequence, log: '', restampBefore: 0 }))
  }
}

export type TestFoldWorker = ReturnType<typeof createTestFoldWorker>

/**
 * A fold worker whose clock moves only when the test or a sleep moves it, so that no statement is late by accident. `now`: the worker's
 * own clock, Unix ms; by default it believes ClickHouse's.
 */
export function createTestFoldWorker(
  tables: Tables,
  databases: Databases,
  {
    holder = 'fold-worker',
    random = () => 0,
    sleep = async () => {},
    onQuarantine = () => {},
    untilNoneRuns = async () => {},
    rememberWatermark = async watermark => watermark,
    now,
    ...config
  }: Partial<Config> & Partial<Omit<Parameters<typeof createFoldWorker>[0], 'config'>> = {},
) {
  let nowMs = 0
  const foldWorker = createFoldWorker({
    tables,
    databases,
    holder,
    config: {
      ...readConfig({}),
      ...{ PLEDGEVIEW_FOLD_MS_MAX: 30_000, PLEDGEVIEW_FOLD_ALONE_MS_MAX: 60_000, ...config },
    },
    monotonicMs: () => nowMs,
    sleep: async ms => {
      await sleep(ms)
      nowMs += Math.max(ms, 0)
    },
    random,
    onQuarantine,
    untilNoneRuns,
    rememberWatermark,
    ...(now && { now }),
  })
  return {
    foldWorker,
    /** Moves the fold worker's monotonic clock forward. */
    advance(ms: number): void {
      nowMs += ms
    },
  }
}

/** What the views say, without `updated_at`. Numbers that may be large are digits; timestamps are Unix ms. */
export interface Reading {
  campaigns: unknown[]
  rewards: unknown[]
  categories: unknown[]
  totals: unknown[]
}

// What the views have as the event has it.
const plain = ledgerColumns.filter(
  ({ name, type }) => copiedColumns.includes(name) && !type.includes('DateTime64'),
)
const plainColumns = plain.map(({ name }) => name)
const exactColumns = [
  'goal_amount',
  'pledged_amount',
  'pledged_platform_amount',
  'percent_funded',
  'backer_count',
  'pledge_count',
  'follower_count',
]
const timestampColumns = ['launch_date', 'end_date', 'created_at']
const rewardColumns = `reward_id, title, description, toString(amount) AS amount_text,
  toString(quantity_available) AS available, toString(quantity_claimed) AS claimed,
  toString(quantity_remaining) AS remaining`

export async function readViews(tables: Tables, { views }: Databases): Promise<Reading> {
  const campaigns = await tables.rows({
    query: `SELECT ${plainColumns.join(', ')},
        ${exactColumns.map(name => `toString(${name}) AS ${name}_text`).join(', ')},
        ${timestampColumns.map(name => `toString(toUnixTimestamp64Milli(${name})) AS ${name}_ms`).join(', ')},
        arrayMap(reward -> reward.reward_id, rewards) AS reward_ids
      FROM ${views}.campaigns ORDER BY campaign_id`,
  })
  const rewards = await tables.rows({
    query: `SELECT campaign_id, currency, ${rewardColumns} FROM ${views}.rewards ORDER BY campaign_id, reward_id`,
  })
  const categories = await tables.rows({
    query: `SELECT category, project_count, live_count, funded_count, pledge_count,
        toString(pledged_platform_amount) AS pledged_platform_amount_text
      FROM ${views}.categories ORDER BY category`,
  })
  const totals = await tables.rows({
    query: `SELECT * EXCEPT raised REPLACE (toString(total_raised) AS total_raised) FROM ${views}.platform_totals`,
  })
  return { campaigns, rewards, categories, totals }
}

/** What `readViews` has to return for the model. */
export function expectedReading({ campaigns, categories, platform }: ReadModel): Reading {
  const { total_raised_minor, ...totals } = platform
  const readings = [...campaigns.values()].toSorted((a, b) =>
    byBytes(a.campaign.campaign_id, b.campaign.campaign_id),
  )
  return {
    campaigns: readings.map(campaignRow),
    rewards: readings.flatMap(rewardRows),
    categories: [...categories]
      .toSorted(([a], [b]) => byBytes(a, b))
      .map(([category, { pledged_platform_minor, ...counts }]) => ({
        ...{ category, ...counts },
        pledged_platform_amount_text: majorText(pledged_platform_minor, platformDigits),
      })),
    totals: [{ ...totals, total_raised: majorText(total_raised_minor, platformDigits) }],
  }
}

function campaignRow(reading: CampaignReading): unknown {
  const { campaign } = reading
  const digits = currencyDigits(campaign.currency) ?? 0
  const goal = BigInt(campaign.goal_amount_minor)
  return {
    ...Object.fromEntries(plain.map(column => [column.name, valueIn(campaign, column)])),
    goal_amount_text: majorText(goal, digits),
    pledged_amount_text: majorText(reading.pledgedMinor, digits),
    pledged_platform_amount_text: majorText(reading.pledgedPlatformMinor, platformDigits),
    percent_funded_text: percentText(reading.pledgedMinor, goal),
    backer_count_text: String(reading.backerCount),
    pledge_count_text: String(reading.pledgeCount),
    follower_count_text: String(campaign.follower_count),
    launch_date_ms: digitsOrNull(campaign.launch_date),
    end_date_ms: digitsOrNull(campaign.end_date),
    created_at_ms: String(campaign.created_at),
    reward_ids: campaign.rewards.map(reward => reward.reward_id),
  }
}

function valueIn(
  campaign: CampaignState,
  { name, event = name, default: added = null }: (typeof plain)[number],
): unknown {
  const [field, part] = event.split('.') as [keyof CampaignState, string?]
  const value = campaign[field] ?? added
  return part === undefined ? value : (value as Record<string, unknown>)[part]
}

function rewardRows({ campaign, rewards }: CampaignReading): unknown[] {
  const digits = currencyDigits(campaign.currency) ?? 0
  return campaign.rewards
    .map((reward, index) => ({
      campaign_id: campaign.campaign_id,
      currency: campaign.currency,
      reward_id: reward.reward_id,
      title: reward.title,
      description: reward.description,
      amount_text: majorText(BigInt(reward.amount_minor), digits),
      available: digitsOrNull(reward.quantity_available),
      claimed: String(rewards[index]?.claimed),
      remaining: digitsOrNull(rewards[index]?.remaining ?? null),
    }))
    .toSorted((a, b) => byBytes(a.reward_id, b.reward_id))
}

function digitsOrNull(value: number | bigint | null): string | null {
  return value === null ? null : String(value)
}
