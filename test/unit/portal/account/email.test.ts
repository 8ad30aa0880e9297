import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { accountIdOf, checkEmail } from '../../../../services/portal/account/email.ts'

const portalKey = 'ab'.repeat(32)

describe('an e-mail address', () => {
  const accepted: [string, string | undefined][] = [
    ['  Ann@Example.COM ', 'ann@example.com'],
    ['ann.smith+list@mail.example.co.uk', 'ann.smith+list@mail.example.co.uk'],
    ['jürgen@example.com', undefined],
    ['info@bücher.example', 'info@xn--bcher-kva.example'],
    ["o'neil@example.com", "o'neil@example.com"],
    ['me@localhost', 'me@localhost'],
    [`${'a'.repeat(64)}@example.com`, `${'a'.repeat(64)}@example.com`],
    [`${'a'.repeat(65)}@example.com`, undefined],
    [`a@${'b'.repeat(250)}.example`, undefined],
  ]
  const refused = [
    ...['', 'ann', '@example.com', 'ann@', 'ann@exam ple.com', 'ann@-example.com', 'ann@example..com'],
    ...['a..b@example.com', 'ann@example.com\r\nBcc: all@example.com', '"ann smith"@example.com'],
    ...['Ann <ann@example.com>', 'ann@example.com, bob@example.com', 'ann@[127.0.0.1]', 'ann@127.0.0.1'],
    ...['ann@1', 'ann@0x7f.1', 'ann@１２７.0.0.1', 'ann@x.com/evil', 'ann@x%2ecom', 'ann@exa\tmple.com'],
  ]
  test.each([...accepted, ...refused.map(text => [text, undefined] as const)])(
    '%j becomes %j',
    (text, email) => {
      const checked = checkEmail(text)
      if (email === undefined) expect(checked).toEqual({ reason: expect.stringMatching(/^(is|has) /) })
      else expect(checked).toEqual({ email })
    },
  )

  test('of any text is refused, or in a normal form that stays as it is and can do no harm in a mail header', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.emailAddress(), fc.string({ unit: 'binary' })), text => {
        const checked = checkEmail(text)
        if ('reason' in checked) return
        expect(checked.email).toMatch(/^[\x21-\x7e]{3,254}$/)
        expect(checked.email).not.toMatch(/[\s,;<>"()[\]\\:]/)
        expect(checkEmail(checked.email)).toEqual(checked)
      }),
    )
  })

  test('of ASCII letters stays as it was typed, but for its case: no two texts become one address', () => {
    const domain = fc
      .array(
        fc.constantFrom('x', 'Y', '1', '.', '.com', '-', '/', '?', '#', '%2e', ':', '\\', '\t', '0x7f', '@'),
      )
      .map(parts => parts.join(''))
    fc.assert(
      fc.property(domain, end => {
        const checked = checkEmail(`Ann@${end}`)
        if ('email' in checked) expect(checked.email).toBe(`ann@${end.trim().toLowerCase()}`)
      }),
      { numRuns: 1_000 },
    )
  })

  test('makes the same account however its letters are written, and another one with another key or address', () => {
    const id = (text: string, key = portalKey) => {
      const checked = checkEmail(text)
      return 'email' in checked ? accountIdOf(key, checked.email) : undefined
    }
    expect(id('Ann@Example.com ')).toBe(id('ann@example.COM'))
    expect(id('ann@example.com')).toMatch(/^acct_[0-9a-f]{32}$/)
    expect(id('ann@example.com')).not.toBe(id('ann+1@example.com'))
    expect(id('ann@example.com')).not.toBe(id('ann@example.com', 'cd'.repeat(32)))
  })
})
