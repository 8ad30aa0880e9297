/** What arrives around the swap of a rebuild: behind what the rebuild has read, and before the tables are exchanged. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { encodePortalEvent } from '../../../contracts/events/portal-codec.ts'
import { portalKeyOf, versionIn } from '../../../contracts/events/portal-event.ts'
import { latestRebuild } from '../../../services/generations/rebuild-log.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { damage, spoiltTitle } from '../../support/damage.ts'
import { obstructed } from '../../support/faulty-tables.ts'
import { column } from '../../support/fold-records.ts'
import { readModelOf } from '../../support/model.ts'
import { expectedReading, type ModelTables, openModelTables, readViews } from '../../support/model-tables.ts'
import {
  compactLog,
  isStampsOfSwap,
  openRebuildableModel,
  platformHistory,
  type RebuildableModel,
} from '../../support/rebuilds.ts'
import { apiKeyEvent, campaignEvent, pledgeEvent } from '../../support/sample-events.ts'

// A busy machine is no failure.
vi.setConfig({ testTimeout: 300_000 })

let model: ModelTables
let live: RebuildableModel
let events: ChangeEvent[]

beforeAll(async () => {
  model = await openModelTables()
})
afterAll(() => model.dispose())
beforeEach(async () => {
  live = await openRebuildableModel(model)
  events = platformHistory(12)
  await live.append(events)
  await live.settled()
})
afterEach(() => live.close())

async function append(more: readonly ChangeEvent[]): Promise<void> {
  events.push(...more)
  await live.append(more)
}

async function expectTruth(): Promise<void> {
  await live.settled()
  expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
}

function activeKeys(): Promise<unknown[]> {
  const query = `SELECT api_key AS value FROM ${live.databases.base}.api_keys FINAL WHERE is_active`
  return column(live.tables, query)
}

/**
 * Tables of a rebuild during whose fold pauses these events arrive, after it has read the log to the end. `eventsOf`: for each
 * attempt to swap, because a busy machine may need several.
 */
function withLateEvents(tables: Tables, eventsOf: (attempt: number) => ChangeEvent[]): Tables {
  let attempts = 0
  return obstructed(tables, {
    async before({ text }) {
      if (!isStampsOfSwap(text)) return
      await append(eventsOf(++attempts))
      await live.committed()
    },
  })
}

/** Tables of a process that is killed at a statement, before it or after it. */
function mortal(tables: Tables, isLast: (text: string) => boolean, isAfter: boolean): Tables {
  let isDead = false
  const dieIf = (mustDie: boolean) => {
    isDead ||= mustDie
    if (isDead) throw new Error('killed')
  }
  return obstructed(tables, {
    before: ({ text }) => dieIf(!isAfter && isLast(text)),
    after: ({ text }) => dieIf(isAfter && isLast(text)),
  })
}

const isExchange = (text: string) => text.startsWith('EXCHANGE TABLES')

test('what projectors have not read yet of the portal is read after the swap: a rebuild does not keep it', async () => {
  await live.stopProjector()
  const at = Date.now()
  const account_id = 'acct_9fe31ca906f3ae344a01db326c5f7370'
  const times = { created_at: at, sessions_valid_from: at, changed_at: at }
  const account = {
    type: 'account' as const,
    data: { account_id, email: 'owner@mirror.example', ...times, version: versionIn(1n, 1) },
  }
  await live.writer.append([
    { topic: 'accounts', key: Buffer.from(portalKeyOf(account)), value: encodePortalEvent(account) },
  ])
  await append([pledgeEvent({ campaign_id: 'c1', pledge_id: 'late' })])
  await live.rebuild()
  await live.startProjector()
  await expectTruth()
  const query = `SELECT account_id AS value FROM ${live.databases.base}.account_ledger FINAL`
  expect(await column(live.tables, query)).toEqual([account_id])
})

describe('a rollback', () => {
  test('shows what the live tables had not folded when the fold was paused', async () => {
    // The live fold has c2 in quarantine, and is behind with it.
    await damage(live, spoiltTitle)
    const quarantine = `INSERT INTO ${live.databases.ledger}.quarantine
      SELECT 'c2', max(fold_id), true, 1, 'TIMEOUT_EXCEEDED', now64(3, 'UTC') FROM ${live.databases.ledger}.fold_progress`
    await live.rebuild({
      tables: obstructed(
        withLateEvents(live.tables, attempt => [
          pledgeEvent({ campaign_id: 'c1', pledge_id: `late ${attempt}` }),
          apiKeyEvent({ key: 'k', account_id: 'acc', version: 1 + attempt, status: 'REVOKED' }),
        ]),
        {
          async before({ text }) {
            if (isStampsOfSwap(text)) await live.tables.run({ query: quarantine })
          },
        },
      ),
    })
    await expectTruth()
    await live.rebuild({ kind: 'rollback' })
    await expectTruth()
    expect(await activeKeys()).toEqual([])
  })

  test('shows it too if it returns to the tables of a rollback', async () => {
    await live.rebuild()
    const tables = withLateEvents(live.tables, attempt => [
      pledgeEvent({ campaign_id: 'c1', pledge_id: `late ${attempt}` }),
    ])
    await live.rebuild({ kind: 'rollback', tables })
    await live.rebuild({ kind: 'rollback' })
    await expectTruth()
  })
})

describe('a rebuild that was killed', () => {
  test('after the swap has the deletions from just before it, also if the log has forgotten them', async () => {
    const late = withLateEvents(live.tables, attempt => [
      { type: 'campaign', key: `c${attempt}`, data: null },
      { type: 'pledge', key: 'c9/p1', data: null },
      { type: 'api-key', key: 'k', data: null },
    ])
    await expect(live.rebuild({ tables: mortal(late, isExchange, true) })).rejects.toThrow('killed')
    // The log ends with other records, so that it can forget the tombstones.
    await append([
      campaignEvent({ campaign_id: 'c100' }),
      pledgeEvent({ campaign_id: 'c100', pledge_id: 'p1' }),
      apiKeyEvent({ key: 'k2', account_id: 'acc' }),
    ])
    await live.committed()
    compactLog(live)
    await live.rebuild()
    await expectTruth()
    expect(await activeKeys()).toEqual(['k2'])
  })

  test('before the swap begins again under another version of the program, whose rules may differ', async () => {
    await expect(live.rebuild({ tables: mortal(live.tables, isExchange, false) })).rejects.toThrow('killed')
    expect(await latestRebuild(live.tables, live.databases)).toMatchObject({ phase: 'swapping' })
    await live.tables.run({
      query: `ALTER TABLE ${live.databases.base}.rebuild_log
              UPDATE detail = replaceRegexpOne(detail, '"program":"[^"]*"', '"program":"0.0.1"') WHERE true
              SETTINGS mutations_sync = 1`,
    })
    const phases: string[] = []
    const { detail } = await live.rebuild({ onPhase: async phase => void phases.push(phase) })
    expect(phases).toEqual(expect.arrayContaining(['preparing', 'reading log', 'swapping', 'rebuilt']))
    expect(detail.records).toBe(events.length)
    await expectTruth()
  })
})
