/** Which API keys are active: of an account's unrevoked keys the three oldest, whatever the order of events. */
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ApiKeyState, ChangeEvent } from '../../../contracts/events/event.ts'
import { activeKeysMax } from '../../../services/projector/fold-statements.ts'
import type { Folder } from '../../../services/projector/folder.ts'
import {
  accountKeysStatement,
  type KeyRecord,
  matchingKeysStatement,
} from '../../../services/shared/api-keys.ts'
import { keyPrefix } from '../../../services/shared/credentials.ts'
import type { Databases } from '../../../services/shared/tables/port.ts'
import {
  createIngest,
  createTestFolder,
  type ModelTables,
  openModelTables,
} from '../../support/model-tables.ts'
import { apiKeyEvent } from '../../support/sample-events.ts'

const longMax = 2n ** 63n - 1n
const january = Date.UTC(2026, 0, 1)

describe('active keys', () => {
  let model: ModelTables
  let databases: Databases
  let ingest: (events: readonly ChangeEvent[]) => Promise<void>
  let folder: Folder

  beforeAll(async () => {
    model = await openModelTables()
  })

  afterAll(() => model.dispose())

  beforeEach(async () => {
    databases = await model.freshDatabases()
    ingest = createIngest(model.tables, databases)
    folder = createTestFolder(model.tables, databases).folder
    await folder.takeOver()
    return () => model.drop(databases)
  })

  async function project(events: readonly ChangeEvent[]): Promise<void> {
    await ingest(events)
    await folder.fold()
  }

  async function activeKeys(): Promise<string[]> {
    const rows = await model.tables.rows<{ key: string }>({
      query: `SELECT api_key AS key FROM ${databases.model}.api_keys FINAL WHERE is_active ORDER BY api_key`,
    })
    return rows.map(({ key }) => key)
  }

  function keyOf(key: string, day: number, state: Partial<ApiKeyState> = {}): ChangeEvent {
    return apiKeyEvent({ key, account_id: 'acc', issued_at: january + day * 86_400_000, ...state })
  }

  test('are the three oldest of an account, whichever was issued or arrived first', async () => {
    await project([keyOf('k5', 5), keyOf('k4', 4), keyOf('k3', 3)])
    expect(await activeKeys()).toEqual(['k3', 'k4', 'k5'])
    await project([keyOf('k2', 2), keyOf('k1', 1), keyOf('other', 1, { account_id: 'another' })])
    expect(await activeKeys()).toEqual(['k1', 'k2', 'k3', 'other'])
  })

  test('that were issued in the same millisecond are told apart the same way by every fold', async () => {
    const keys = ['e', 'd', 'c', 'b', 'a'].map(key => keyOf(key, 1))
    await project(keys.slice(0, 4))
    await project(keys)
    await project(keys.toReversed())
    expect(await activeKeys()).toEqual(['a', 'b', 'c'])
  })

  test('make room for the next oldest when one is revoked or deleted', async () => {
    await project([1, 2, 3, 4, 5].map(day => keyOf(`k${day}`, day)))
    await project([keyOf('k2', 2, { version: 2, status: 'REVOKED' })])
    expect(await activeKeys()).toEqual(['k1', 'k3', 'k4'])
    await project([{ type: 'api-key', key: 'k1', data: null }])
    expect(await activeKeys()).toEqual(['k3', 'k4', 'k5'])
    await project([keyOf('k1', 1, { version: longMax })])
    expect(await activeKeys()).toEqual(['k3', 'k4', 'k5'])
  })

  test('do not come back by a stale version, and a state that nobody knows is not active', async () => {
    await project([keyOf('k1', 1, { version: 5, status: 'REVOKED' }), keyOf('k2', 2, { status: 'UNKNOWN' })])
    await project([keyOf('k1', 1, { version: 4 })])
    expect(await activeKeys()).toEqual([])
  })

  test('keep their age when they are renamed, and take their scopes and hash from the latest version', async () => {
    await project([1, 2, 3, 4].map(day => keyOf(`k${day}`, day)))
    const renamed = {
      version: 2,
      changed_at: january + 9 * 86_400_000,
      scopes: [],
      secret_hash: 'cd'.repeat(32),
    }
    await project([keyOf('k1', 1, renamed)])
    expect(await activeKeys()).toEqual(['k1', 'k2', 'k3'])
    const rows = await model.tables.rows({
      query: `SELECT scopes, secret_hash FROM ${databases.model}.api_keys FINAL WHERE api_key = 'k1'`,
    })
    expect(rows).toEqual([{ scopes: [], secret_hash: 'cd'.repeat(32) }])
  })

  test('are as old as their last change where nobody said when they were issued', async () => {
    const since = (day: number) => ({ issued_at: null, changed_at: january + day * 86_400_000 })
    await project([3, 1, 4, 2].map(day => keyOf(`k${day}`, 0, since(day))))
    expect(await activeKeys()).toEqual(['k1', 'k2', 'k3'])
  })

  test('are not written again by a fold that changes nothing', async () => {
    await model.tables.run({ query: `SYSTEM STOP MERGES ${databases.model}.api_keys` })
    const keys = [1, 2, 3, 4].map(day => keyOf(`k${day}`, day))
    await project(keys)
    await project(keys)
    const count = { query: `SELECT count() AS rows FROM ${databases.model}.api_keys` }
    expect(await model.tables.rows(count)).toEqual([{ rows: 4 }])
    await project([keyOf('k1', 1, { version: 2, status: 'REVOKED' })])
    // The revoked one and the one that takes its place.
    expect(await model.tables.rows(count)).toEqual([{ rows: 6 }])
  })

  test('are the same for any order, batching and repetition of their events', async () => {
    const key = fc.record({
      account_id: fc.constantFrom('one', 'two'),
      issued_at: fc.constantFrom(january, january + 1, january + 2),
      versions: fc.array(fc.constantFrom('ACTIVE', 'REVOKED', 'UNKNOWN', 'deleted'), {
        minLength: 1,
        maxLength: 3,
      }),
    })
    const world = fc
      .array(key, { minLength: 1, maxLength: 10 })
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
        fc.integer({ min: 1, max: 20 }),
      )
    })
    let run = 0
    await fc.assert(
      fc.asyncProperty(scenario, async ([keys, events, batchSize]) => {
        // Accounts and keys of earlier runs stay in the tables; names keep them apart.
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
        for (let from = 0; from < prefixed.length; from += batchSize) {
          await project(prefixed.slice(from, from + batchSize))
        }
        const expected = Object.values(Object.groupBy(keys, ({ account_id }) => account_id)).flatMap(
          (ofAccount = []) =>
            ofAccount
              .filter(({ versions }) => versions.at(-1) === 'ACTIVE' && !versions.includes('deleted'))
              .toSorted((a, b) => a.issued_at - b.issued_at || (a.key < b.key ? -1 : 1))
              .slice(0, activeKeysMax)
              .map(({ key: name }) => named(name)),
        )
        const active = (await activeKeys()).filter(name => name.startsWith(`${run}:`))
        expect(active).toEqual(expected.toSorted())
      }),
      // A busy machine tries fewer, and does not fail for it.
      { numRuns: 15, interruptAfterTimeLimit: 20_000 },
    )
  })

  test('are told from waiting and revoked ones in an account’s list, oldest first', async () => {
    await project([
      ...[4, 3, 2, 1].map(day => keyOf(`pv_live_000000000000000${day}`, day)),
      keyOf('pv_live_revoked_00000000', 0, { status: 'REVOKED', version: longMax }),
      keyOf('pv_live_foreign_00000000', 0, { account_id: 'another' }),
      { type: 'api-key', key: 'pv_live_deleted_00000000', data: null },
    ])
    const keys = await model.tables.rows<KeyRecord>(accountKeysStatement(databases, 'acc'))
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
  })

  test('are found by the whole key or its first 16 characters, never by less or by a pattern', async () => {
    const key = 'pv_live_0123456789abcdef'
    await project([
      keyOf(key, 1),
      keyOf(`${key.slice(0, 16)}ZZZZZZZZ`, 2),
      keyOf('pv_live_other_0000000000', 3),
    ])
    const found = async (text: string) =>
      (await model.tables.rows<KeyRecord>(matchingKeysStatement(databases, text))).map(row => row.key)
    expect(await found(key)).toEqual([key])
    expect(await found(keyPrefix(key))).toEqual([key, `${key.slice(0, 16)}ZZZZZZZZ`])
    expect(await found(key.slice(0, 17))).toEqual([])
    expect(await found('pv_live_')).toEqual([])
    expect(await found('pv_live_%')).toEqual([])
  })
})
