import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type DataDirectory,
  holdIdentity,
  openDataDirectory,
  openExistingDataDirectory,
  readSecrets,
} from '../../../services/local/data-directory.ts'
import { makeDataDirectory } from '../../support/deployment/service-process.ts'

const made = { keyPepper: 'a'.repeat(64), backerKey: 'b'.repeat(64) }

describe('a data directory', () => {
  let temporary: ReturnType<typeof makeDataDirectory>
  let directory: DataDirectory

  beforeEach(() => {
    temporary = makeDataDirectory()
    directory = openDataDirectory(temporary.path)
  })

  afterEach(() => temporary.remove())

  test('keeps to the secrets and the currency that it began with, and names the setting that differs', () => {
    holdIdentity(directory, made, 'USD')
    expect(() => holdIdentity(directory, made, 'USD')).not.toThrow()
    const other = 'c'.repeat(64)
    expect(() => holdIdentity(directory, { ...made, keyPepper: other }, 'USD')).toThrow(
      'PLEDGEVIEW_KEY_PEPPER',
    )
    expect(() => holdIdentity(directory, { ...made, backerKey: other }, 'USD')).toThrow(
      'PLEDGEVIEW_BACKER_KEY',
    )
    expect(() => holdIdentity(directory, made, 'EUR')).toThrow('PLEDGEVIEW_PLATFORM_CURRENCY')
  })

  test('keeps no secret in its identity, and no other user can read either file', () => {
    const secrets = readSecrets(directory, { keyPepper: undefined, backerKey: undefined }, count =>
      new Uint8Array(count).fill(7),
    )
    holdIdentity(directory, secrets, 'USD')
    const identity = readFileSync(join(directory.root, 'identity.json'), 'utf8')
    expect(identity).not.toContain(secrets.keyPepper)
    expect(identity).not.toContain(secrets.backerKey)
    for (const name of ['identity.json', 'secrets.json']) {
      expect(statSync(join(directory.root, name)).mode & 0o077).toBe(0)
    }
  })

  test('creates its secrets once, and configured secrets take precedence', () => {
    const none = { keyPepper: undefined, backerKey: undefined }
    const first = readSecrets(directory, none, count => new Uint8Array(count).fill(7))
    expect(readSecrets(directory, none, count => new Uint8Array(count).fill(8))).toEqual(first)
    expect(readSecrets(directory, { ...none, keyPepper: made.keyPepper }, () => new Uint8Array())).toEqual({
      ...first,
      keyPepper: made.keyPepper,
    })
  })

  test('makes no new secrets if its tables were made with others, and says how to go on', () => {
    const none = { keyPepper: undefined, backerKey: undefined }
    const secrets = readSecrets(directory, none, count => new Uint8Array(count).fill(7))
    mkdirSync(join(directory.tables, 'store'), { recursive: true })
    rmSync(join(directory.root, 'secrets.json'))
    const again = () => readSecrets(directory, none, count => new Uint8Array(count).fill(8))
    expect(again).toThrow('restore it from the backup')
    // A refusal leaves nothing that the next start would take for the secrets.
    expect(again).toThrow('restore it from the backup')
    expect(() =>
      readSecrets(directory, { ...none, keyPepper: made.keyPepper }, () => new Uint8Array()),
    ).toThrow('PLEDGEVIEW_BACKER_KEY')
    expect(readSecrets(directory, secrets, () => new Uint8Array())).toEqual(secrets)
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

  test('is not accepted without a journal', () => {
    expect(() => openExistingDataDirectory(temporary.path)).toThrow('is no data directory yet')
  })
})
