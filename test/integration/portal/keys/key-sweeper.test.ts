/** What time does to keys: they end at their moment, and the sweeper writes it into the log, also after a kill. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { encodeState } from '../../../../contracts/events/codec.ts'
import type { ApiKeyState, StateEvent } from '../../../../contracts/events/event.ts'
import type { KeyRecord } from '../../../../services/api-keys/api-keys.ts'
import { createKeySweeper } from '../../../../services/portal/keys/key-sweeper.ts'
import { type KeyModel, type KeyPortal, openKeyModel } from '../../../support/portal/key-model.ts'
import { apiKeyEvent } from '../../../support/sample-events.ts'

const hourMs = 3_600_000

let model: KeyModel
let portal: KeyPortal
let account: string
let accounts = 0

beforeAll(async () => {
  model = await openKeyModel()
  portal = await model.openPortal()
})
afterAll(() => model.close())
beforeEach(() => {
  accounts++
  account = `account-${accounts}`
})

function sweeper(bounds: { rowsMax?: number; graceMs?: number } = {}) {
  const { tables, databases } = model
  return createKeySweeper({ tables, databases, admin: portal.admin, graceMs: 0, ...bounds })
}

/** Appends keys of the account, and resolves when they are in the tables. */
async function appended(...states: (Partial<ApiKeyState> & { key: string })[]): Promise<void> {
  const events = states.map(state => apiKeyEvent({ account_id: account, ...state }))
  await portal.admin.writer.append(
    events.map(event => ({
      topic: 'api-keys',
      key: Buffer.from(event.key),
      value: encodeState(event as StateEvent),
    })),
  )
  for (const { key } of states) await expect.poll(() => portal.admin.directory.find(key)).toHaveLength(1)
}

async function find(key: string): Promise<KeyRecord | undefined> {
  return (await portal.admin.directory.find(key))[0]
}

describe('the sweeper', () => {
  test('revokes what has expired, and nothing else', async () => {
    const now = Date.now()
    await appended(
      { key: 'expired', expires_at: now - 1_000 },
      { key: 'later', expires_at: now + hourMs },
      { key: 'kept' },
    )
    expect((await find('expired'))?.status).toBe('ended')
    expect(await sweeper({ graceMs: hourMs })()).toBe(0)
    // Two portals write the same.
    expect(await Promise.all([1, 2].map(() => sweeper()()))).toEqual([1, 1])
    await expect.poll(async () => (await find('expired'))?.status).toBe('revoked')
    expect(await find('later')).toMatchObject({ status: 'active' })
    expect(await find('kept')).toMatchObject({ status: 'active', version: '1' })
    expect(await sweeper()()).toBe(0)
  })

  test('writes a bounded number of keys in a round, and each once', async () => {
    const keys = [1, 2, 3, 4, 5].map(n => `many-${n}`)
    await appended(...keys.map(key => ({ key, expires_at: Date.now() - 1_000 })))
    const bounded = sweeper({ rowsMax: 2 })
    const rounds: number[] = []
    await expect
      .poll(async () => {
        rounds.push(await bounded())
        return Promise.all(keys.map(async key => (await find(key))?.status))
      })
      .toEqual(keys.map(() => 'revoked'))
    expect(Math.max(...rounds)).toBe(2)
    expect(rounds.reduce((a, b) => a + b)).toBe(5)
  })

  test('gives a replaced key the end that its replacement says, once that one can no longer be withdrawn', async () => {
    const until = Date.now() + hourMs
    const replacing = { replaces: 'old', replaced_until: until }
    await appended(
      { key: 'old', version: 7 },
      { key: 'new', ...replacing },
      { key: 'foreign', account_id: 'another', ...replacing, replaced_until: until - 1 },
      { key: 'young', ...replacing, replaced_until: until - 2, issued_at: Date.now() },
    )
    expect(await sweeper({ graceMs: hourMs })()).toBe(1)
    await expect.poll(async () => (await find('old'))?.expires_at_ms).toBe(until)
    expect(await find('old')).toMatchObject({ status: 'active', secret_hash: 'ab'.repeat(32) })
    expect(await sweeper()()).toBe(0)
  })
})
