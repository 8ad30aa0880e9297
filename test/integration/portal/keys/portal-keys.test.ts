/** The keys of accounts: confirmed when their secret was shown, replaced with an overlap, at most three at a time. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultPortalKeysOptions } from '../../../../services/portal/keys/portal-keys.ts'
import { KeyError } from '../../../../services/shared/api-keys/api-keys.ts'
import { keyPrefix, verifySecret } from '../../../../services/shared/api-keys/credentials.ts'
import {
  integrationOf,
  type KeyModel,
  openKeyModel,
  pepper,
  type TestPortal,
} from '../../../support/portal/key-model.ts'

const { confirmMsMax, confirmMarginMs } = defaultPortalKeysOptions
const hourMs = 3_600_000

describe('the portal’s keys', () => {
  let model: KeyModel
  let portal: TestPortal
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

  async function issued(): Promise<string> {
    const { key } = await portal.keys.issue(integrationOf(account))
    await portal.keys.confirm(account, key)
    return key
  }

  async function statuses(): Promise<string[]> {
    return (await portal.keys.ofAccount(account)).map(({ status }) => status)
  }

  async function find(key: string) {
    const found = (await portal.keys.ofAccount(account)).find(record => record.key === key)
    if (!found) throw new Error(`${key} is not listed`)
    return found
  }

  test('end by themselves until they are confirmed, and stay then', async () => {
    const before = Date.now()
    const { key, secret } = await portal.keys.issue(integrationOf(account, 'int_7'))
    const record = await find(key)
    expect(record).toMatchObject({ integration_id: 'int_7', status: 'active', expires_at_ms: null })
    expect(record.confirm_by_ms).toBe(record.issued_at_ms + confirmMsMax)
    expect(record.issued_at_ms).toBeGreaterThanOrEqual(before)
    expect(verifySecret(pepper, secret, record.secret_hash)).toBe(true)
    await portal.keys.confirm(account, keyPrefix(key))
    const confirmed = await find(key)
    expect(confirmed).toMatchObject({ confirm_by_ms: null, status: 'active', integration_id: 'int_7' })
    await portal.keys.confirm(account, key)
    expect((await find(key)).version).toBe(confirmed.version)
  })

  test('cannot be confirmed when it is too late, when they have ended, or by another account', async () => {
    // Too late to confirm it, and long before it ends: a busy machine needs seconds until it is active.
    const late = await model.openPortal({ msAgo: confirmMsMax - confirmMarginMs + 1_000 })
    const { key } = await late.keys.issue(integrationOf(account))
    await expect(portal.keys.confirm(account, key)).rejects.toThrow(KeyError)
    await expect(portal.keys.confirm(account, key)).rejects.toThrow('too long')
    const other = await issued()
    expect(await portal.keys.revoke(account, other)).toMatchObject({ key: other, status: 'revoked' })
    const revoked = await find(other)
    expect(await portal.keys.revoke(account, keyPrefix(other))).toEqual(revoked)
    await expect(portal.keys.confirm(account, other)).rejects.toThrow('has ended')
    const unknown = portal.keys.confirm('another', other)
    await expect(unknown).rejects.toThrow(`You have no key ${keyPrefix(other)}.`)
    await expect(portal.keys.revoke('another', other)).rejects.toThrow('You have no key')
    await expect(portal.keys.replace('another', other, 'at-once', integrationOf('another'))).rejects.toThrow(
      'You have no key',
    )
  })

  test('expire an hour or a day after their replacement, but only once that one was shown', async () => {
    for (const [overlap, ms] of [
      ['one-hour', hourMs],
      ['one-day', 24 * hourMs],
    ] as const) {
      const old = await issued()
      const { key } = await portal.keys.replace(account, old, overlap, integrationOf(account))
      expect(await find(old)).toMatchObject({ status: 'active', expires_at_ms: null })
      // Any portal can confirm it.
      const other = await model.openPortal()
      await other.keys.confirm(account, key)
      const replacement = await find(key)
      expect(replacement).toMatchObject({ replaces: old, status: 'active' })
      await expect.poll(async () => (await find(old)).expires_at_ms).toBe(replacement.replaced_until_ms)
      expect((replacement.replaced_until_ms ?? 0) - replacement.issued_at_ms).toBeCloseTo(ms, -4)
      expect(await find(old)).toMatchObject({ status: 'active', scopes: ['read:public'] })
      await expect(portal.keys.replace(account, old, overlap, integrationOf(account))).rejects.toThrow(
        'replaces this one already',
      )
      await portal.keys.deleteAll(account)
    }
  })

  test('can be replaced at once although three are active; beside the old one there is no room', async () => {
    const [first = ''] = await Promise.all([issued(), issued(), issued()])
    const refusal = portal.keys.replace(account, first, 'one-hour', integrationOf(account))
    await expect(refusal).rejects.toThrow(KeyError)
    await expect(refusal).rejects.toThrow('at once')
    expect(await statuses()).toEqual(['active', 'active', 'active'])
    const { key } = await portal.keys.replace(account, first, 'at-once', integrationOf(account))
    expect(await find(first)).toMatchObject({ status: 'revoked' })
    expect(await find(key)).toMatchObject({ status: 'active', replaces: first, replaced_until_ms: null })
    expect((await statuses()).toSorted()).toEqual(['active', 'active', 'active', 'revoked'])
  })

  test('are never more than three, however many portals create and replace them at once', async () => {
    const old = await issued()
    const portals = await Promise.all([1, 2, 3].map(() => model.openPortal()))
    const results = await Promise.allSettled(
      portals.flatMap(({ keys }) => [
        keys.issue(integrationOf(account)),
        keys.replace(account, old, 'one-day', integrationOf(account)),
      ]),
    )
    const made = results.filter(result => result.status === 'fulfilled').map(({ value }) => value.key)
    expect(made).toHaveLength(2)
    for (const result of results) {
      if (result.status === 'rejected')
        expect(String(result.reason)).toMatch(/^KeyError: (?=.*three)[A-Z].*\.$/i)
    }
    const left = await portal.keys.ofAccount(account)
    expect(left.map(({ key }) => key).toSorted()).toEqual([old, ...made].toSorted())
    expect(left.map(({ status }) => status)).toEqual(['active', 'active', 'active'])
  })

  test('that have ended make room for a new one although no sweeper runs', async () => {
    // It has to become active before it ends, and a busy machine needs seconds for that.
    const late = await model.openPortal({ msAgo: confirmMsMax - 12_000 })
    await Promise.all([issued(), issued(), late.keys.issue(integrationOf(account))])
    await expect.poll(statuses, { timeout: 60_000 }).toEqual(['active', 'active'])
    const key = await issued()
    expect(await find(key)).toMatchObject({ status: 'active' })
    expect(await statuses()).toEqual(['active', 'active', 'active'])
  })

  test('are not created without end', async () => {
    const bounded = await model.openPortal({ issuedPerDayMax: 1 })
    const key = await issued()
    await portal.keys.revoke(account, key)
    await expect(bounded.keys.issue(integrationOf(account))).rejects.toThrow('within a day')
  })

  test('are all deleted with their account, and their addresses with them', async () => {
    const keys = [await issued(), await issued()]
    await portal.keys.deleteAll(account, 'another integration')
    expect(await statuses()).toEqual(['active', 'active'])
    await portal.keys.revoke(account, keys[0] ?? '')
    await portal.keys.deleteAll(account)
    expect(await portal.admin.directory.ofAccount(account)).toEqual([])
    const rows = await model.tables.rows({
      query: `SELECT integration_contact_email AS email, integration_id AS id FROM ${model.databases.model}.api_key_ledger FINAL
              WHERE api_key IN {keys:Array(String)}`,
      query_params: { keys },
    })
    expect(rows).toEqual([
      { email: '', id: '' },
      { email: '', id: '' },
    ])
  })
})
