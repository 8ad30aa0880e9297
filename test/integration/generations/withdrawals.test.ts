/** What is deleted, hidden or revoked in the live tables stays so, whatever history a rebuild reads. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { dropOthers } from '../../../services/generations/rebuilds.ts'
import { qualified } from '../../../services/tables/generations.ts'
import { apiKeyEvent, campaignEvent, pledgeEvent } from '../../support/events/sample-events.ts'
import {
  compactLog,
  emptyLog,
  openRebuildableModel,
  type RebuildableModel,
  stampsOf,
} from '../../support/generations/rebuilds.ts'
import { column } from '../../support/projector/fold-records.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'

// A busy machine is no failure.
vi.setConfig({ testTimeout: 180_000 })

const model = useModelTables()
let live: RebuildableModel

beforeEach(async () => {
  live = await openRebuildableModel(model)
})
afterEach(() => live.close())

const campaignGone: ChangeEvent = { type: 'campaign', key: 'c1', data: null }
const pledgeGone: ChangeEvent = { type: 'pledge', key: 'c2/p1', data: null }
const keyGone: ChangeEvent = { type: 'api-key', key: 'k1', data: null }

/** Two public campaigns with two pledges each, and a key. */
const world: ChangeEvent[] = [
  ...['c1', 'c2'].flatMap(campaign_id => [
    campaignEvent({ campaign_id }),
    pledgeEvent({ campaign_id, pledge_id: 'p1' }),
    pledgeEvent({ campaign_id, pledge_id: 'p2' }),
  ]),
  apiKeyEvent({ key: 'k1', account_id: 'acc' }),
]

/**
 * Appends `world` and what follows it, and later `world` once more, as an operator does whose log has lost its beginning: the log has only
 * the latter.
 */
async function appendedAgain(events: readonly ChangeEvent[]) {
  await live.append([...world, ...events])
  await live.settled()
  emptyLog(live)
  await live.append(world)
}

async function shown() {
  await live.settled()
  const { base, views } = live.databases
  return {
    campaigns: await column(
      live.tables,
      `SELECT campaign_id AS value FROM ${views}.campaigns ORDER BY value`,
    ),
    pledges: await column(
      live.tables,
      `SELECT pledge_count AS value FROM ${views}.campaigns WHERE campaign_id = 'c2'`,
    ),
    keys: await column(live.tables, `SELECT api_key AS value FROM ${base}.api_keys FINAL WHERE is_active`),
  }
}

describe('a rebuild from events that were appended again, and are from before', () => {
  test('a deletion does not bring back the campaign, the pledge or the key', async () => {
    await appendedAgain([campaignGone, pledgeGone, keyGone])
    expect(await shown()).toEqual({ campaigns: ['c2'], pledges: [1], keys: [] })
    const { detail } = await live.rebuild()
    expect(detail.differences).toMatchObject({ same: 1, added: 0, removed: 0, different: 0 })
    expect(await shown()).toEqual({ campaigns: ['c2'], pledges: [1], keys: [] })
    // The new tables know the deletions too, so the next rebuild does not bring them back either.
    await dropOthers(live)
    await live.rebuild({ acceptsLoss: true })
    expect(await shown()).toEqual({ campaigns: ['c2'], pledges: [1], keys: [] })
  })

  test('a campaign was hidden, a pledge cancelled and a key revoked does not take that back, also if a loss is accepted', async () => {
    await appendedAgain([
      campaignEvent({ campaign_id: 'c1', version: 2, status: 'SUBMITTED' }),
      pledgeEvent({ campaign_id: 'c2', pledge_id: 'p1', version: 2, status: 'CANCELLED' }),
      apiKeyEvent({ key: 'k1', account_id: 'acc', version: 2, status: 'REVOKED' }),
      pledgeEvent({ campaign_id: 'c2', pledge_id: 'p3' }),
    ])
    expect(await shown()).toEqual({ campaigns: ['c2'], pledges: [2], keys: [] })
    await expect(live.rebuild()).rejects.toThrow('pledges of campaign c2')
    await live.rebuild({ acceptsLoss: true })
    expect(await shown()).toEqual({ campaigns: ['c2'], pledges: [1], keys: [] })
    // They are versions, not tombstones: a later version makes the campaign public again.
    await live.append([campaignEvent({ campaign_id: 'c1', version: 3 })])
    expect((await shown()).campaigns).toEqual(['c1', 'c2'])
  })

  test('a key got an end does not take the end back, and loses nothing that its row has', async () => {
    const at = Date.UTC(2040, 0, 1)
    const times = { expires_at: at, issued_at: at - 1 }
    await appendedAgain([
      apiKeyEvent({ key: 'k1', account_id: 'acc', version: 2, ...times }),
      apiKeyEvent({ key: 'k2', account_id: 'acc', status: 'REVOKED', ...times }),
    ])
    const rowsOf = () =>
      live.tables.rows({
        query: `SELECT * FROM ${live.databases.base}.api_key_ledger FINAL WHERE account_id != '' ORDER BY api_key`,
      })
    const before = await rowsOf()
    expect(before).toMatchObject([
      { api_key: 'k1', issued_at: '2039-12-31 23:59:59.999' },
      { api_key: 'k2', issued_at: '2039-12-31 23:59:59.999' },
    ])
    await live.rebuild({ acceptsLoss: true })
    expect(await rowsOf()).toEqual(before)
    expect((await shown()).keys).toEqual(['k1'])
  })

  test('a campaign was hidden by an older rule shows it if the log has the same version', async () => {
    await live.append(world)
    await live.settled()
    const { ledger } = live.databases
    await live.tables.run({
      query: `INSERT INTO ${ledger}.campaign_ledger SELECT * REPLACE (false AS is_public, '' AS title)
        FROM ${ledger}.campaign_ledger FINAL WHERE campaign_id = 'c1'`,
    })
    await live.rebuild()
    expect((await shown()).campaigns).toEqual(['c1', 'c2'])
  })
})

describe('deletions during a rebuild', () => {
  test.each(['reading log', 'verifying'] as const)(
    'that the log forgets while it is %s are in the new tables',
    async phase => {
      await live.append(world)
      await live.settled()
      await live.rebuild({
        async onPhase(at) {
          if (at !== phase) return
          await live.append([campaignGone, pledgeGone, keyGone])
          await live.settled()
          // The log ends with other records, so that it can forget the tombstones.
          await live.append([
            campaignEvent({ campaign_id: 'c3' }),
            pledgeEvent({ campaign_id: 'c3', pledge_id: 'p1' }),
            apiKeyEvent({ key: 'k2', account_id: 'acc' }),
          ])
          await live.settled()
          compactLog(live)
        },
      })
      expect(await shown()).toEqual({ campaigns: ['c2', 'c3'], pledges: [1], keys: ['k2'] })
    },
  )
})

describe('a rollback', () => {
  test('does not bring back what was deleted since the swap, also if the log has forgotten it', async () => {
    await live.append(world)
    await live.settled()
    await live.rebuild()
    await live.append([campaignGone, pledgeGone, keyGone])
    await live.append([
      campaignEvent({ campaign_id: 'c3' }),
      pledgeEvent({ campaign_id: 'c3', pledge_id: 'p1' }),
      apiKeyEvent({ key: 'k2', account_id: 'acc' }),
    ])
    await live.settled()
    compactLog(live)
    const [since] = await column(live.tables, "SELECT toString(now64(3, 'UTC')) AS value")
    await live.rebuild({ kind: 'rollback' })
    expect(await shown()).toEqual({ campaigns: ['c2', 'c3'], pledges: [1], keys: ['k2'] })
    expect((await stampsOf(live)).filter(({ at }) => at >= String(since))).toEqual([])
    await live.rebuild({ kind: 'rollback' })
    expect(await shown()).toEqual({ campaigns: ['c2', 'c3'], pledges: [1], keys: ['k2'] })
  })
})

test('a ledger never forgets a tombstone: merges keep it, and no setting removes it', async () => {
  await live.append([...world, campaignGone, pledgeGone, keyGone])
  await live.settled()
  for (const ledger of ['campaign_ledger', 'pledge_ledger', 'api_key_ledger']) {
    await live.tables.run({ query: `OPTIMIZE TABLE ${qualified(ledger, live.databases)} FINAL` })
    const tombstones = `SELECT count() AS value FROM ${qualified(ledger, live.databases)} WHERE version = 18446744073709551615`
    expect(await column(live.tables, tombstones), ledger).toEqual([1])
    const engines = `SELECT engine_full AS value FROM system.tables WHERE concat(database, '.', name) = '${qualified(ledger, live.databases)}'`
    const [engine] = await column(live.tables, engines)
    expect(engine).toMatch(/^ReplacingMergeTree\(version\) ORDER BY/)
    expect(engine).not.toMatch(/TTL|cleanup/i)
  }
})
