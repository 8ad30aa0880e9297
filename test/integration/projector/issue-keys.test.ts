/** Issuing and revoking keys while a projector runs: at most three keys are active, and no secret is stored. */

import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  issueKey,
  type KeyAdmin,
  type KeyDirectory,
  KeyError,
  type NewKey,
  revokeKey,
} from '../../../services/api-keys/api-keys.ts'
import { keyPrefix, verifySecret } from '../../../services/api-keys/credentials.ts'
import { qualified } from '../../../services/tables/generation-log.ts'
import { type KeyModel, openKeyModel, pepper } from '../../support/portal/key-model.ts'
import { column } from '../../support/projector/fold-records.ts'

describe('API keys', () => {
  let model: KeyModel
  let admin: KeyAdmin
  let directory: KeyDirectory
  let account: string
  let accounts = 0
  /** The keys from before this test. */
  let before: string[]

  beforeAll(async () => {
    model = await openKeyModel()
    admin = (await model.openPortal()).admin
    directory = admin.directory
  })

  afterAll(() => model.close())

  beforeEach(async () => {
    const ledger = `${model.databases.base}.api_key_ledger`
    before = (await column(model.tables, `SELECT api_key AS value FROM ${ledger} FINAL`)).map(String)
    accounts++
    account = `account-${accounts}`
  })

  function wanted(name: string): NewKey {
    return { account, name, url: 'https://mirror.example', email: 'owner@mirror.example' }
  }

  /** The log without the broker's answer to the first append. After it, `all` get no further than the broker. */
  function losing(answers: 'first' | 'all'): KeyAdmin['writer'] {
    let appends = 0
    return {
      ...admin.writer,
      async append(records) {
        appends++
        if (appends === 1 || answers === 'first') await admin.writer.append(records)
        if (appends === 1 || answers === 'all') throw new Error('the answer was lost')
      },
    }
  }

  async function statuses(): Promise<string[]> {
    return (await directory.ofAccount(account)).map(({ status }) => status)
  }

  /** The keys of the account that the ledger knows, deleted ones among them. A tombstone has no account. */
  function foldedKeys(): Promise<object[]> {
    return model.tables.rows({
      query: `SELECT toUInt8(folded.is_active) AS is_active, toUInt8(ledger.is_unrevoked) AS is_unrevoked
              FROM ${model.databases.base}.api_key_ledger AS ledger FINAL
              INNER JOIN ${model.databases.base}.api_keys AS folded FINAL ON folded.api_key = ledger.api_key
              WHERE ledger.account_id IN ('', {account:String}) AND NOT has({before:Array(String)}, ledger.api_key)`,
      query_params: { account, before },
    })
  }

  test('five that are issued at once give three that work, and two that are refused and deleted', async () => {
    const names = ['1', '2', '3', '4', '5']
    let looks = 0
    const all = Promise.withResolvers<void>()
    // None writes before all have looked: one that finds three active keys would write nothing.
    const together: KeyDirectory = {
      ...directory,
      async ofAccount(of) {
        const found = await directory.ofAccount(of)
        if (++looks === names.length) all.resolve()
        await all.promise
        return found
      },
    }
    const issued = await Promise.allSettled(
      names.map(name => issueKey({ ...admin, directory: together }, wanted(name))),
    )
    const good = issued.filter(result => result.status === 'fulfilled').map(({ value }) => value)
    const refused = issued.filter(result => result.status === 'rejected').map(({ reason }) => reason)
    expect(good).toHaveLength(3)
    for (const reason of refused) {
      expect(reason).toBeInstanceOf(KeyError)
      expect(reason.message).toContain('three active keys')
    }
    for (const { key, secret } of good) {
      const [record] = await directory.find(key)
      expect(record?.status).toBe('active')
      expect(verifySecret(pepper, secret, record?.secret_hash ?? '')).toBe(true)
    }
    expect(await statuses()).toEqual(['active', 'active', 'active'])
    expect(await foldedKeys()).toHaveLength(5)
    // The secrets are neither in the log nor in a table.
    const files = await Promise.all([model.journal, `${model.journal}-wal`].map(file => readFile(file)))
    const tables = ['api_key_ledger', 'api_keys'].map(table => qualified(table, model.databases))
    const rows = await Promise.all(
      tables.map(table => model.tables.rows({ query: `SELECT * FROM ${table}` })),
    )
    for (const written of [
      Buffer.concat(files).toString('latin1'),
      ...rows.map(ofTable => JSON.stringify(ofTable)),
    ])
      for (const { key, secret } of good)
        expect([written.includes(key), written.includes(secret)]).toEqual([true, false])
  })

  test('a key that would be the fourth is refused before anything is written, and the active keys are named; a revoked one frees its place', async () => {
    const keys = await Promise.all(['1', '2', '3'].map(name => issueKey(admin, wanted(name))))
    const prefixes = keys.map(({ key }) => keyPrefix(key))
    const silent = { ...admin.writer, append: () => Promise.reject(new Error('written')) }
    const refusal = issueKey({ ...admin, writer: silent }, wanted('4'))
    await expect(refusal).rejects.toThrow(KeyError)
    for (const prefix of prefixes) await expect(refusal).rejects.toThrow(prefix)
    const [first = ''] = prefixes
    expect(await revokeKey(admin, first)).toMatchObject({ status: 'revoked', account_id: account })
    await expect(issueKey(admin, wanted('5'))).resolves.toMatchObject({
      key: expect.stringMatching(/^pv_live_/),
    })
    await expect(revokeKey(admin, first)).rejects.toThrow('revoked already')
    await expect(revokeKey(admin, 'pv_live_no_such_key')).rejects.toThrow('no key')
  })

  test.each<[string, string, () => Partial<KeyAdmin>]>([
    [
      'that is not folded in time',
      'not folded within 15 s',
      () => {
        let nowMs = 0
        const blind: KeyDirectory = { find: async () => [], ofAccount: async () => [] }
        return { directory: blind, monotonicMs: () => (nowMs += 1_000) }
      },
    ],
    [
      'that may be in the log although its append failed',
      'the answer was lost',
      () => ({ writer: losing('first') }),
    ],
    [
      'whose state cannot be read',
      'the service is gone',
      () => ({ directory: { ...directory, find: () => Promise.reject(new Error('the service is gone')) } }),
    ],
  ])('a key %s is deleted again, so it takes no place', async (_, reason, broken) => {
    await expect(issueKey({ ...admin, ...broken() }, wanted('1'))).rejects.toThrow(reason)
    await expect.poll(foldedKeys).toEqual([{ is_active: 0, is_unrevoked: 0 }])
    expect(await statuses()).toEqual([])
  })

  test('a key that may be in the log, and cannot be deleted again, is named with what to do', async () => {
    const refusal = await issueKey({ ...admin, writer: losing('all') }, wanted('1')).catch(error => error)
    expect(refusal).toBeInstanceOf(KeyError)
    expect(refusal.cause.message).toBe('the answer was lost')
    await expect.poll(statuses).toEqual(['active'])
    const [{ key } = { key: '' }] = await directory.ofAccount(account)
    expect(refusal.message).toContain(`the key ${keyPrefix(key)} may become active`)
    expect(refusal.message).toContain('revoke it')
  })
})
