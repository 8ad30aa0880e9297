import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ConfigError, readConfig, settingNames } from '../../../services/shared/config.ts'

const example = readFileSync(new URL('../../../deploy/pledgeview.env.example', import.meta.url), 'utf8')
const listed = [...example.matchAll(/^#(PLEDGEVIEW_[A-Z_]+)=(.*)$/gm)].map(([, name, value]) => ({
  name,
  value,
}))

describe('the configuration', () => {
  test('every setting stands in the commented example, and nothing else does', () => {
    expect(listed.map(({ name }) => name).sort()).toEqual([...settingNames].sort())
  })

  test('the example states the true defaults', () => {
    const defaults = readConfig({})
    const stated = Object.fromEntries(listed.map(({ name, value }) => [name, value]))
    expect(readConfig(stated)).toEqual(defaults)
  })

  test('all faults are reported at once, each with the name of its setting', () => {
    const read = () =>
      readConfig({
        PLEDGEVIEW_COMMIT_HORIZON_MS: 'soon',
        PLEDGEVIEW_PLATFORM_CURRENCY: 'EURO',
        PLEDGEVIEW_REJECT_SHARE_MAX: '2',
        PLEDGEVIEW_KEY_PEPPER: 'short',
        PLEDGEVIEW_TYPO: '1',
      })
    expect(read).toThrow(ConfigError)
    for (const name of ['COMMIT_HORIZON_MS', 'PLATFORM_CURRENCY', 'REJECT_SHARE_MAX', 'KEY_PEPPER', 'TYPO']) {
      expect(read).toThrow(`PLEDGEVIEW_${name}`)
    }
  })

  test('relations between settings are checked', () => {
    expect(() => readConfig({ PLEDGEVIEW_BATCH_MS_MAX: '5000', PLEDGEVIEW_RETRY_MS_MAX: '1000' })).toThrow(
      'PLEDGEVIEW_BATCH_MS_MAX',
    )
    expect(() =>
      readConfig({ PLEDGEVIEW_KAFKA_SESSION_MS: '9000', PLEDGEVIEW_KAFKA_OUTAGE_MS_MAX: '9000' }),
    ).toThrow('PLEDGEVIEW_KAFKA_SESSION_MS')
  })

  test('a wrong secret is not repeated in the message', () => {
    expect(() => readConfig({ PLEDGEVIEW_BACKER_KEY: 'do-not-print-me' })).not.toThrow('do-not-print-me')
  })

  test('the configuration cannot be changed after it was read', () => {
    expect(Object.isFrozen(readConfig({}))).toBe(true)
  })
})
