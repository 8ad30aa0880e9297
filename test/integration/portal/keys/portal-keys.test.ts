/** The keys of accounts: issued, changed, revoked, at most three at a time. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { encodeState } from '../../../../contracts/events/codec.ts'
import type { StateEvent } from '../../../../contracts/events/event.ts'
import { verifySecret } from '../../../../services/api-keys/credentials.ts'
import type { LogRecord, NewRecord } from '../../../../services/log/port.ts'
import { lifetimes } from '../../../../services/portal/keys/key-fields.ts'
import { createPortalKeys } from '../../../../services/portal/keys/portal-keys.ts'
import { createDecoder } from '../../../../services/projector/ingest/decode.ts'
import { apiKeyEvent } from '../../../support/events/sample-events.ts'
import { type KeyModel, type KeyPortal, openKeyModel, pepper } from '../../../support/portal/key-model.ts'
import { sampleFields } from '../../../support/portal/memory-ports.ts'

describe('the portal’s keys', () => {
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

  async function issued(): Promise<string> {
    return (await portal.keys.issue(account, sampleFields)).key
  }

  /** The event of a key of the account that has expired, and that no sweeper has seen. */
  function expiring(key: string): NewRecord {
    const event = apiKeyEvent({ key, account_id: account, expires_at: Date.now() - 1_000 })
    return { topic: 'api-keys', key: Buffer.from(key), value: encodeState(event as StateEvent) }
  }

  async function statuses(): Promise<string[]> {
    return (await portal.keys.ofAccount(account)).map(({ status }) => status)
  }

  async function find(key: string) {
    const found = (await portal.keys.ofAccount(account)).find(record => record.key === key)
    if (!found) throw new Error(`${key} is not listed`)
    return found
  }

  test('are active with the secret that was given out', async () => {
    const { key, secret } = await portal.keys.issue(account, sampleFields)
    const record = await find(key)
    expect(record).toMatchObject({ ...sampleFields, status: 'active', expires_at_ms: null })
    expect(verifySecret(pepper, secret, record.secret_hash)).toBe(true)
    const ended = { ...record, status: 'revoked', version: expect.any(String) }
    expect(await portal.keys.revoke(record)).toEqual(ended)
  })

  test('get another name and contact, and keep the rest', async () => {
    const { key } = await portal.keys.issue(account, sampleFields, lifetimes['30-days'])
    const before = await find(key)
    expect(before.expires_at_ms).toBe(before.issued_at_ms + lifetimes['30-days'])
    const fields = { name: 'Renamed', url: 'https://new.example/', contact_email: 'new@board.example' }
    await portal.keys.change(before, fields)
    expect(await find(key)).toEqual({ ...before, ...fields, version: expect.any(String) })
    await portal.keys.revoke(await find(key))
    await expect(portal.keys.change(await find(key), fields)).rejects.toThrow('has ended')
  })

  test('stay revoked in the log, too, if a change overtakes the revocation', async () => {
    const { key } = await portal.keys.issue(account, sampleFields)
    const { admin } = portal
    const appended: NewRecord[] = []
    const append: typeof admin.writer.append = async records => {
      if (appended.length === 0) await portal.keys.revoke(await find(key))
      appended.push(...records)
      await admin.writer.append(records)
    }
    const late = createPortalKeys({ ...admin, writer: { ...admin.writer, append } })
    await expect(late.change(await find(key), sampleFields)).rejects.toThrow('has ended')
    const decode = createDecoder()
    const states = appended.map(record => decode(record as LogRecord))
    expect(states).toMatchObject([{ data: { status: 'ACTIVE' } }, { data: { status: 'REVOKED' } }])
  })

  test('that have expired make room for a new one although no sweeper runs', async () => {
    await Promise.all([issued(), issued()])
    await portal.admin.writer.append([expiring(`pv_live_expired_${account}`)])
    await expect.poll(async () => (await statuses()).toSorted()).toEqual(['active', 'active', 'ended'])
    const key = await issued()
    expect(await find(key)).toMatchObject({ status: 'active' })
    expect((await statuses()).toSorted()).toEqual(['active', 'active', 'active', 'revoked'])
  })

  test('are given up in time if the log does not answer', async () => {
    const record = await find(await issued())
    const writer = { ...portal.admin.writer, append: () => new Promise<void>(() => undefined) }
    const hung = createPortalKeys({ ...portal.admin, writer }, { appendMsMax: 50 })
    const isLate = { name: 'PortalUnavailable' }
    await expect(hung.issue(account, sampleFields)).rejects.toMatchObject({ name: 'KeyError', cause: isLate })
    await expect(hung.change(record, sampleFields)).rejects.toMatchObject(isLate)
    await expect(hung.revoke(record)).rejects.toMatchObject(isLate)
    await expect(hung.deleteAll(account)).rejects.toMatchObject(isLate)
  })

  test('are told as revoked when the log takes that late, and not before', async () => {
    const record = await find(await issued())
    const taken = Promise.withResolvers<void>()
    const writer = { ...portal.admin.writer, append: () => taken.promise }
    const slow = createPortalKeys({ ...portal.admin, writer }, { appendMsMax: 50 })
    let told = 0
    await expect(slow.revoke(record, () => told++)).rejects.toMatchObject({ name: 'PortalUnavailable' })
    expect(told).toBe(0)
    taken.resolve()
    await expect.poll(() => told).toBe(1)
  })

  test('are all deleted with their account, and their addresses with them', async () => {
    const keys = [await issued(), await issued()]
    await portal.keys.revoke(await find(keys[0] ?? ''))
    await portal.keys.deleteAll(account)
    expect(await portal.admin.directory.ofAccount(account)).toEqual([])
    const rows = await model.tables.rows({
      query: `SELECT integration_contact_email AS email, account_id AS account FROM ${model.databases.base}.api_key_ledger FINAL
              WHERE api_key IN {keys:Array(String)}`,
      query_params: { keys },
    })
    expect(rows).toEqual([
      { email: '', account: '' },
      { email: '', account: '' },
    ])
  })
})
