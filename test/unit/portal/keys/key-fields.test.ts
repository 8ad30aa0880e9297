import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkKeyFields } from '../../../../services/portal/keys/key-fields.ts'

const good = { name: 'Campaign mirror', url: 'https://mirror.example', contact_email: 'dev@mirror.example' }

describe('what a person types for an integration', () => {
  test('is kept in its normal form', () => {
    const typed = {
      name: '  Campaign mirror ',
      url: ' https://Mirror.example ',
      contact_email: 'Dev@Mirror.example',
    }
    const fields = { ...good, url: 'https://mirror.example/' }
    expect(checkKeyFields(typed)).toEqual({ fields })
  })

  test.each([
    ['name', '', 'is missing'],
    ['name', '   ', 'is missing'],
    ['name', 'x'.repeat(81), 'is longer than 80 characters'],
    ['name', 'two\nlines', 'has line breaks or other control characters'],
    ['name', 'a\u202eb', 'has line breaks or other control characters'],
    ['name', '\ud800', 'has characters that are not text'],
    ['url', '', 'is missing'],
    ['url', 'mirror.example', 'is not a web address, like https://example.com'],
    ['url', 'javascript:alert(1)', 'does not begin with https:// or http://'],
    ['url', 'data:text/html,x', 'does not begin with https:// or http://'],
    ['url', 'https://user:secret@mirror.example', 'has a user name or a password in it'],
    ['url', `https://mirror.example/${'x'.repeat(2_048)}`, 'is longer than 2048 characters'],
    ['contact_email', 'dev', 'is not an e-mail address, like name@example.com'],
    ['contact_email', '', 'is missing'],
  ])('%s %j %s', (field, text, reason) => {
    expect(checkKeyFields({ ...good, [field]: text }).faults).toEqual({ [field]: reason })
  })

  test('has every fault named at once', () => {
    const { faults = {} } = checkKeyFields({ name: '', url: '', contact_email: '' })
    expect(Object.keys(faults)).toEqual(['name', 'url', 'contact_email'])
  })

  test('never throws, and is never kept with a scheme that could run, for any text', () => {
    const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.webUrl())
    fc.assert(
      fc.property(text, text, (name, url) => {
        const checked = checkKeyFields({ ...good, name, url })
        if (checked.faults) return
        expect(checked.fields.url).toMatch(/^https?:\/\//)
        expect(checkKeyFields(checked.fields)).toEqual(checked)
      }),
    )
  })
})
