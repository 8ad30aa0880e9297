/** Which API keys are active: the three oldest unrevoked keys of an account, in any order of events. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ApiKeyState, ChangeEvent } from '../../../../contracts/events/event.ts'
import { activeKeysMax, keyDirectory } from '../../../../services/api-keys/api-keys.ts'
import { keyPrefix } from '../../../../services/api-keys/credentials.ts'
import { isCampaignFold, obstructed } from '../../../support/clickhouse/faulty-tables.ts'
import { apiKeyEvent, campaignEvent } from '../../../support/events/sample-events.ts'
import { activeKeys } from '../../../support/projector/fold-records.ts'
import { createIngest, createTestFoldWorker } from '../../../support/projector/model-tables.ts'
import { useFreshModel } from '../../../support/projector/use-model-tables.ts'
import { whileTime } from '../../../support/runner/while-time.ts'

const longMax = 2n ** 63n - 1n
const model = useFreshModel()
const january = Date.UTC(2026, 0, 1)

describe('active keys', () => {
  test('keep their age when they are renamed, and take their scopes and hash from the latest version', async () => {
    const latest = { scopes: [], secret_hash: 'cd'.repeat(32) }
    await model.project([1, 2, 3, 4].map(day => keyOf(`k${day}`, day)))
    await model.project([keyOf('k1', 1, { version: 2, changed_at: january + 9 * 86_400_000, ...latest })])
    expect(await active()).toEqual(['k1', 'k2', 'k3'])
    const rows = await model.tables.rows({
      query: `SELECT scopes, secret_hash FROM ${model.databases.base}.api_keys FINAL WHERE api_key = 'k1'`,
    })
    expect(rows).toEqual([latest])
  })

  test('are as old as their last change if the event has no time of issue', async () => {
    const since = (day: number) => ({ issued_at: null, changed_at: january + day * 86_400_000 })
    await model.project([3, 1, 4, 2].map(day => keyOf(`k${day}`, 0, since(day))))
    expect(await active()).toEqual(['k1', 'k2', 'k3'])
  })

  test('are not written again by a fold that changes nothing', async () => {
    const { project, tables, databases } = model
    await tables.run({ query: `SYSTEM STOP MERGES ${databases.base}.api_keys` })
    for (let times = 0; times < 2; times++) await project([1, 2, 3, 4].map(day => keyOf(`k${day}`, day)))
    const count = { query: `SELECT count() AS rows FROM ${databases.base}.api_keys` }
    expect(await tables.rows(count)).toEqual([{ rows: 4 }])
    await project([keyOf('k1', 1, { version: 2, status: 'REVOKED' })])
    // The revoked key, and the key that takes its place.
    expect(await tables.rows(count)).toEqual([{ rows: 6 }])
  })

  test('are the same for any order, batching and repetition of their events', async () => {
    // Most keys are active, so that most accounts have more of them than they may have.
    const state = fc.constantFrom('ACTIVE', 'ACTIVE', 'REVOKED', 'UNKNOWN', 'deleted')
    const key = fc.record({
      account_id: fc.constantFrom('one', 'two', 'three'),
      issued_at: fc.constantFrom(january, january + 1, january + 2),
      versions: fc.array(state, { minLength: 1, maxLength: 3 }),
    })
    const world = fc
      .array(key, { minLength: 12, maxLength: 18 })
      .map(keys => keys.map((state, n) => ({ ...state, key: `k${n}` })))
    const scenario = world.chain(keys => {
      const events = keys.flatMap(({ key: name, account_id, issued_at, versions }) =>
        versions.map(
          (status, version): ChangeEvent =>
            status === 'deleted'
              ? { type: 'api-key', key: name, data: null }
              : apiKeyEvent({ key: name, account_id, issued_at, status, version }),
        ),
      )
      return fc.tuple(
        fc.constant(keys),
        fc.shuffledSubarray([...events, ...events], { minLength: events.length * 2 }),
        fc.integer({ min: 3, max: 40 }),
      )
    })
    let run = 0
    await fc.assert(
      fc.asyncProperty(
        scenario,
        whileTime(20_000, async ([keys, events, batchSize]) => {
          // Accounts and keys of earlier runs stay in the tables. Their names keep them apart.
          run++
          const named = (name: string) => `${run}:${name}`
          const prefixed = events.map(
            (event): ChangeEvent =>
              event.type === 'api-key' && event.data
                ? apiKeyEvent({
                    ...event.data,
                    key: named(event.key),
                    account_id: named(event.data.account_id),
                  })
                : { type: 'api-key', key: named(event.key), data: null },
          )
          await model.project(prefixed, { batchSize })
          const expected = Object.values(Object.groupBy(keys, ({ account_id }) => account_id)).flatMap(
            (ofAccount = []) =>
              ofAccount
                .filter(({ versions }) => versions.at(-1) === 'ACTIVE' && !versions.includes('deleted'))
                .toSorted((a, b) => a.issued_at - b.issued_at || (a.key < b.key ? -1 : 1))
                .slice(0, activeKeysMax)
                .map(({ key: name }) => named(name)),
          )
          const ofRun = (await active()).filter(name => name.startsWith(`${run}:`))
          expect(ofRun).toEqual(expected.toSorted())
        }),
      ),
      { numRuns: 15 },
    )
  })

  test('are folded between two pieces of a large fold, so that they do not wait for its end', async () => {
    const { tables, databases } = model
    const ingest = createIngest(tables, databases, 'other')
    const activeAtPiece: string[][] = []
    const { foldWorker } = createTestFoldWorker(
      obstructed(tables, {
        async before(call) {
          if (!isCampaignFold(call)) return
          activeAtPiece.push(await active())
          if (activeAtPiece.length === 1) await ingest([keyOf('new', 1)])
        },
      }),
      databases,
      { holder: 'other', PLEDGEVIEW_FOLD_CAMPAIGNS_MAX: 1 },
    )
    await foldWorker.acquireLeadership()
    await ingest(['a', 'b', 'c'].map(campaign_id => campaignEvent({ campaign_id })))
    await foldWorker.fold()
    expect(activeAtPiece).toEqual([[], ['new'], ['new']])
  })

  test('are listed with an account’s waiting and revoked keys, oldest first, each with its state', async () => {
    const { tables, databases } = model
    await model.project([
      ...[4, 3, 2, 1].map(day => keyOf(`pv_live_000000000000000${day}`, day)),
      keyOf('pv_live_revoked_00000000', 0, { status: 'REVOKED', version: longMax }),
      keyOf('pv_live_foreign_00000000', 0, { account_id: 'another' }),
      { type: 'api-key', key: 'pv_live_deleted_00000000', data: null },
    ])
    const keys = await keyDirectory(tables, databases).ofAccount('acc')
    expect(keys.map(({ key, status, version }) => [key, status, version])).toEqual([
      ['pv_live_revoked_00000000', 'revoked', String(longMax)],
      ['pv_live_0000000000000001', 'active', '1'],
      ['pv_live_0000000000000002', 'active', '1'],
      ['pv_live_0000000000000003', 'active', '1'],
      ['pv_live_0000000000000004', 'waiting', '1'],
    ])
    expect(keys[1]).toMatchObject({
      account_id: 'acc',
      contact_email: 'owner@mirror.example',
      issued_at_ms: january + 86_400_000,
    })
    // Of an account that has revoked thousands of keys, the active ones are among the latest that are listed.
    await tables.run({
      query: `INSERT INTO ${databases.base}.api_key_ledger (api_key, version, account_id, issued_at)
              SELECT concat('pv_live_many', toString(number)), 2, 'acc', now64(3, 'UTC') FROM numbers(1200) SETTINGS async_insert = 0`,
    })
    await model.project([keyOf('pv_live_foreign_00000001', 0, { account_id: 'another' })])
    const many = await keyDirectory(tables, databases).ofAccount('acc')
    expect(many).toHaveLength(1_000)
    expect(many.filter(({ status }) => status === 'active')).toHaveLength(3)
    expect(many).toEqual(many.toSorted((a, b) => a.issued_at_ms - b.issued_at_ms))
  })

  test('are found by the whole key or its first 16 characters, never by less or by a pattern', async () => {
    const key = 'pv_live_0123456789abcdef'
    const { tables, databases } = model
    await model.project([
      keyOf(key, 1),
      keyOf(`${key.slice(0, 16)}ZZZZZZZZ`, 2),
      keyOf('pv_live_other_0000000000', 3),
    ])
    const found = async (text: string) =>
      (await keyDirectory(tables, databases).find(text)).map(row => row.key)
    expect(await found(key)).toEqual([key])
    expect(await found(keyPrefix(key))).toEqual([key, `${key.slice(0, 16)}ZZZZZZZZ`])
    expect(await found(key.slice(0, 17))).toEqual([])
    expect(await found('pv_live_')).toEqual([])
    expect(await found('pv_live_%')).toEqual([])
  })
})

function keyOf(key: string, day: number, state: Partial<ApiKeyState> = {}): ChangeEvent {
  return apiKeyEvent({ key, account_id: 'acc', issued_at: january + day * 86_400_000, ...state })
}

async function active(): Promise<string[]> {
  return (await activeKeys(model.tables, model.databases)).map(String)
}
