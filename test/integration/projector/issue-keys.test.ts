/** Issuing and revoking keys against a projector that runs: at most three are active, and no secret is kept. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createProjectorService } from '../../../services/projector/service.ts'
import {
  issueKey,
  type KeyAdmin,
  type KeyDirectory,
  KeyError,
  keyDirectory,
  type NewKey,
  revokeKey,
} from '../../../services/shared/api-keys.ts'
import { readConfig } from '../../../services/shared/config.ts'
import { keyPrefix, verifySecret } from '../../../services/shared/credentials.ts'
import { openJournalReader, openJournalWriter } from '../../../services/shared/event-log/journal/journal.ts'
import type { EventReader, EventWriter } from '../../../services/shared/event-log/port.ts'
import { createMetrics } from '../../../services/shared/metrics.ts'
import type { Databases } from '../../../services/shared/tables/port.ts'
import { backerKey, type ModelTables, openModelTables } from '../../support/model-tables.ts'

const pepper = 'pepper'.repeat(8)

describe('API keys', () => {
  let model: ModelTables
  let databases: Databases
  let root: string
  let writer: EventWriter
  let reader: EventReader
  let directory: KeyDirectory
  let admin: KeyAdmin
  let account: string
  let accounts = 0
  let stop: () => Promise<void>

  beforeAll(async () => {
    model = await openModelTables()
    databases = await model.freshDatabases()
    root = await mkdtemp(join(tmpdir(), 'pledgeview-keys-'))
    writer = await openJournalWriter(join(root, 'journal.sqlite'))
    reader = await openJournalReader(join(root, 'journal.sqlite'), { consumer: 'projector' })
    directory = keyDirectory(model.tables, databases)
    const service = createProjectorService({
      reader,
      tables: model.tables,
      databases,
      config: readConfig({ PLEDGEVIEW_BATCH_MS_MAX: '10', PLEDGEVIEW_COMMIT_HORIZON_MS: '60000' }),
      backerKey,
      run: 'run',
      settleMs: 0,
      metrics: createMetrics(),
      logger: pino({ level: 'silent' }),
      now: Date.now,
      monotonicMs: () => performance.now(),
      random: () => 0,
    })
    const abort = new AbortController()
    const running = service.run(abort.signal)
    stop = async () => {
      abort.abort()
      await running
    }
  })

  afterAll(async () => {
    await stop()
    await reader.close()
    await writer.close()
    await model.dispose()
    await rm(root, { recursive: true, force: true })
  })

  beforeEach(() => {
    accounts++
    account = `account-${accounts}`
    admin = { directory, writer, pepper, now: Date.now, monotonicMs: () => performance.now(), randomBytes }
  })

  function wanted(name: string): NewKey {
    return { account, name, url: 'https://mirror.example', email: 'owner@mirror.example' }
  }

  async function statuses(): Promise<string[]> {
    return (await directory.ofAccount(account)).map(({ status }) => status)
  }

  test('five that are issued at once give three that work, and two that are refused and revoked', async () => {
    const issued = await Promise.allSettled(
      ['1', '2', '3', '4', '5'].map(name => issueKey(admin, wanted(name))),
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
      expect(verifySecret(pepper, secret, record?.secret_hash)).toBe(true)
    }
    await expect
      .poll(statuses)
      .toEqual(expect.arrayContaining(['active', 'active', 'active', 'revoked', 'revoked']))
    expect(await statuses()).toHaveLength(5)
  })

  test('a revoked key frees its place; the refusal names the keys that hold theirs', async () => {
    const keys = await Promise.all(['1', '2', '3'].map(name => issueKey(admin, wanted(name))))
    const prefixes = keys.map(({ key }) => keyPrefix(key))
    const refusal = issueKey(admin, wanted('4'))
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

  test('a key that nobody sees folded is revoked again', async () => {
    let nowMs = 0
    const blind: KeyDirectory = { find: async () => [], ofAccount: async () => [] }
    const monotonicMs = () => {
      nowMs += 1_000
      return nowMs
    }
    await expect(issueKey({ ...admin, directory: blind, monotonicMs }, wanted('1'))).rejects.toThrow(
      'not folded within 15 s',
    )
    await expect.poll(statuses).toEqual(['revoked'])
  })

  test('a key whose fate cannot be learnt is revoked again', async () => {
    const broken: KeyDirectory = {
      find: () => Promise.reject(new Error('the service is gone')),
      ofAccount: directory.ofAccount,
    }
    await expect(issueKey({ ...admin, directory: broken }, wanted('1'))).rejects.toThrow(
      'the service is gone',
    )
    await expect.poll(statuses).toEqual(['revoked'])
  })

  test('the secret is kept nowhere: not in the log, not in a table', async () => {
    const { key, secret } = await issueKey(admin, wanted('1'))
    const files = ['journal.sqlite', 'journal.sqlite-wal'].map(name => readFile(join(root, name)))
    const log = Buffer.concat(await Promise.all(files))
    expect(log.includes(key)).toBe(true)
    expect(log.includes(secret)).toBe(false)
    for (const table of ['api_key_ledger', 'api_keys']) {
      const rows = await model.tables.rows({ query: `SELECT * FROM ${databases.model}.${table}` })
      expect(JSON.stringify(rows)).toContain(key)
      expect(JSON.stringify(rows)).not.toContain(secret)
    }
  })
})
