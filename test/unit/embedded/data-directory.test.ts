import { chmodSync, chownSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type DataDirectory,
  openDataDirectory,
  openExistingDataDirectory,
  readSecrets,
} from '../../../services/embedded/data-directory.ts'
import { openEmbeddedModel } from '../../../services/embedded/model.ts'
import { openJournalReader, openJournalWriter } from '../../../services/log/local/journal.ts'
import { lockDataDirectory, lockFileOf } from '../../../services/log/local/lock.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { makeDataDirectory } from '../../support/deployment/service-process.ts'
import { fromStart } from '../../support/events/starts.ts'
import { needs } from '../../support/runner/requirements.ts'

const pepper = 'a'.repeat(64)

describe('a data directory', () => {
  let temporary: ReturnType<typeof makeDataDirectory>
  let directory: DataDirectory

  beforeEach(() => {
    temporary = makeDataDirectory()
    directory = openDataDirectory(temporary.path)
  })

  afterEach(() => temporary.remove())

  test('creates its secrets once, which no other user can read, and configured ones take precedence', () => {
    const first = readSecrets(directory, {})
    expect(new Set(Object.values(first)).size).toBe(3)
    expect(statSync(join(directory.root, 'secrets.json')).mode & 0o077).toBe(0)
    expect(readSecrets(directory, {})).toEqual(first)
    const configured = { PLEDGEVIEW_KEY_PEPPER: pepper }
    expect(readSecrets(directory, configured)).toEqual({ ...first, keyPepper: pepper })
  })

  test('makes no new secrets if its tables were made with others, and says how to go on', () => {
    const { keyPepper, backerKey, portalKey } = readSecrets(directory, {})
    mkdirSync(join(directory.tables, 'store'), { recursive: true })
    rmSync(join(directory.root, 'secrets.json'))
    // A refusal leaves nothing that the next start would take for the secrets.
    for (const configured of [{}, {}, { PLEDGEVIEW_KEY_PEPPER: pepper }])
      expect(() => readSecrets(directory, configured)).toThrow(
        'restore it from the backup, or set PLEDGEVIEW_KEY',
      )
    const two = { PLEDGEVIEW_KEY_PEPPER: keyPepper, PLEDGEVIEW_BACKER_KEY: backerKey }
    expect(() => readSecrets(directory, two)).toThrow('PLEDGEVIEW_PORTAL_KEY')
    const all = { ...two, PLEDGEVIEW_PORTAL_KEY: portalKey }
    expect(readSecrets(directory, all)).toEqual({ keyPepper, backerKey, portalKey })
  })

  test('makes no new secrets if a projector has read its journal, whose keys and accounts belong to others', async () => {
    // What events append has made is used with no secrets yet.
    await (await openJournalWriter(directory.journal)).close()
    readSecrets(directory, {})
    await (await openJournalReader(directory.journal, { consumer: 'projector', starts: fromStart })).close()
    rmSync(join(directory.root, 'secrets.json'))
    expect(() => readSecrets(directory, {})).toThrow('was used with it; restore it from the backup')
  })

  test('says how to go on if its secrets file is damaged', () => {
    writeFileSync(join(directory.root, 'secrets.json'), '{')
    expect(() => readSecrets(directory, {})).toThrow(
      /is not a secrets file: .*; restore it from the backup, or set/,
    )
    const key = '0'.repeat(64)
    const all = { PLEDGEVIEW_KEY_PEPPER: pepper, PLEDGEVIEW_BACKER_KEY: key, PLEDGEVIEW_PORTAL_KEY: key }
    expect(readSecrets(directory, all)).toEqual({ keyPepper: pepper, backerKey: key, portalKey: key })
  })

  test('is closed to other users when it is opened, with what an earlier version left in it', () => {
    mkdirSync(directory.tables, { mode: 0o755 })
    writeFileSync(directory.journal, '', { mode: 0o644 })
    chmodSync(directory.root, 0o755)
    openDataDirectory(directory.root)
    for (const path of [directory.root, directory.tables, directory.journal]) {
      expect(statSync(path).mode & 0o077, path).toBe(0)
    }
  })

  test('of another user is refused to root, whose files that user could not read', async context => {
    needs(context, {
      isMet: process.getuid?.() === 0,
      reason: 'only root can give a file away',
      isOptional: true,
    })
    writeFileSync(directory.journal, '')
    const opened = () =>
      openEmbeddedModel({
        ...{ directory, config: readConfig({}), sql: undefined, metrics: createMetrics() },
        logger: pino({ level: 'silent' }),
      })
    chownSync(directory.journal, 12_345, 12_345)
    await expect(opened()).rejects.toThrow('belongs to the user with the id 12345: run this as that user')
    expect(readdirSync(directory.root)).toEqual(['journal.sqlite'])
  })

  test('is not accepted without a journal', () => {
    expect(() => openExistingDataDirectory(temporary.path)).toThrow('is no data directory yet')
  })

  test('that cannot be looked into or locked says why: it may belong to another user, or its disk is full', () => {
    expect(() => openExistingDataDirectory('x'.repeat(300))).toThrow('ENAMETOOLONG')
    mkdirSync(lockFileOf(directory.root))
    const { root } = directory
    expect(() => lockDataDirectory(root)).toThrow(`cannot lock the data directory ${root}: unable to open`)
  })
})
