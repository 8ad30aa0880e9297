import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readConfig, settingNames } from '../../../services/runtime/config.ts'
import { resolveSecretFiles, secretNames } from '../../../services/runtime/secret-files.ts'

const hex = 'ab'.repeat(32)
let folder = ''

describe('secrets from files', () => {
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'pledgeview-secrets-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('every setting whose name says that it is secret may come from a file', () => {
    const secret = settingNames.filter(name => /(_PEPPER|_KEY|_PASSWORD|_SECRET)$/.test(name))
    expect(secretNames).toEqual(expect.arrayContaining(secret))
    for (const name of secretNames) expect(settingNames).toContain(`${name}_FILE`)
  })

  test.each(secretNames)('%s is the content of its file', name => {
    const value =
      { PLEDGEVIEW_SMTP_URL: 'smtps://a:b@c', PLEDGEVIEW_REDIS_URL: 'redis://:p@h' }[name as string] ?? hex
    const others: Readonly<Record<string, Record<string, string>>> = {
      PLEDGEVIEW_KAFKA_SASL_PASSWORD: sasl,
      PLEDGEVIEW_SCHEMA_REGISTRY_PASSWORD: { PLEDGEVIEW_SCHEMA_REGISTRY_USER: 'a' },
      PLEDGEVIEW_OIDC_CLIENT_SECRET: {
        PLEDGEVIEW_OIDC_ISSUER: 'https://a.example',
        PLEDGEVIEW_OIDC_CLIENT_ID: 'a',
      },
    }
    const rest = others[name]
    expect(readConfig({ ...rest, [`${name}_FILE`]: file(value) })).toEqual(
      readConfig({ ...rest, [name]: value }),
    )
  })

  test('any text comes back as it was written, with at most one newline cut', () => {
    const newline = fc.constantFrom('', '\n', '\r\n')
    // A text that ends in a newline is written with one more. A byte order mark is no part of a text.
    const text = fc.string({ unit: 'grapheme', minLength: 1 }).filter(one => !/[\r\n]$|^\uFEFF/.test(one))
    fc.assert(
      fc.property(text, fc.constantFrom('', '\n'), newline, (secret, more, end) => {
        const written = file(`${secret}${more}${more === '' ? end : '\n'}`)
        const { settings, faults } = resolveSecretFiles({ PLEDGEVIEW_SQL_PASSWORD_FILE: written })
        expect([settings, faults]).toEqual([{ PLEDGEVIEW_SQL_PASSWORD: `${secret}${more}` }, []])
      }),
    )
  })

  test('a secret that is set twice is refused', () => {
    const read = () => readConfig({ PLEDGEVIEW_KEY_PEPPER: hex, PLEDGEVIEW_KEY_PEPPER_FILE: file(hex) })
    expect(read).toThrow('PLEDGEVIEW_KEY_PEPPER_FILE: PLEDGEVIEW_KEY_PEPPER is set too; set only one of them')
  })

  test.each([
    ['is not there', () => join(folder, 'nowhere'), 'cannot be read: ENOENT'],
    ['is a folder', () => folder, 'cannot be read: EISDIR'],
    ['is empty', () => file(''), 'is empty'],
    ['has a newline and nothing else', () => file('\n'), 'is empty'],
    ['is no text', () => file(Buffer.from([0xff, 0xfe])), 'is not UTF-8 text'],
    ['is too long', () => file('x'.repeat(65_537)), 'is longer than 65536 bytes'],
    ['never ends', () => '/dev/zero', 'is longer than 65536 bytes'],
  ])('if the file %s, the message has the setting and the path', (_, make, reason) => {
    const path = make()
    expect(() => readConfig({ PLEDGEVIEW_KEY_PEPPER_FILE: path })).toThrow(
      `wrong settings:\n  PLEDGEVIEW_KEY_PEPPER_FILE: ${path} ${reason}`,
    )
  })

  test('a wrong value names its file, is not repeated, and is reported beside every other fault', () => {
    const path = file('do-not-print-me')
    const read = () =>
      readConfig({ PLEDGEVIEW_KEY_PEPPER_FILE: path, PLEDGEVIEW_PORT: 'x', PLEDGEVIEW_TYPO_FILE: path })
    expect(read).toThrow(`PLEDGEVIEW_KEY_PEPPER from ${path}: is not 64 lower-case hex digits`)
    expect(read).toThrow('PLEDGEVIEW_PORT: is not a whole number')
    expect(read).toThrow('PLEDGEVIEW_TYPO_FILE: there is no such setting')
    expect(read).not.toThrow('do-not-print-me')
  })
})

test('every command and service reads its settings with readConfig, and in no other way', () => {
  const services = new URL('../../../services/', import.meta.url)
  const sources = readdirSync(services, { recursive: true, encoding: 'utf8' })
    // The samples are shown to API consumers.
    .filter(name => name.endsWith('.ts') && !name.startsWith('portal/guide/samples/'))
  for (const name of sources) {
    const text = readFileSync(new URL(name, services), 'utf8')
    expect(text.replaceAll('readConfig(process.env)', ''), name).not.toMatch(
      /process\.env\.PLEDGEVIEW|process\.env\[/,
    )
  }
})

const sasl = { PLEDGEVIEW_KAFKA_SASL_MECHANISM: 'plain', PLEDGEVIEW_KAFKA_SASL_USERNAME: 'u' }
let written = 0

/** A new file as a secret's mount has it: only its owner may read it. */
function file(content: string | Uint8Array): string {
  const path = join(folder, String(written++))
  writeFileSync(path, content)
  chmodSync(path, 0o400)
  return path
}
