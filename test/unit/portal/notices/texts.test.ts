import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkSubject, checkText } from '../../../../services/portal/notices/announcement.ts'
import { plainName } from '../../../../services/portal/notices/texts.ts'

describe('a name that a person typed', () => {
  const anything = fc.string({ unit: 'binary', maxLength: 200 })

  test('is one printable line of bounded length in a mail, whatever it holds', () => {
    fc.assert(
      fc.property(anything, typed => {
        const name = plainName(typed)
        expect(name).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
        expect([...name].length).toBeLessThanOrEqual(80)
      }),
    )
  })

  test('has nothing that a mail program makes a link of', () => {
    const linkish = fc
      .array(fc.constantFrom('https://', 'www.', 'evil', '.example', '@', '/', ':', ' ', '\\', '\n'))
      .map(parts => parts.join(''))
    fc.assert(
      fc.property(linkish, typed => {
        expect(plainName(typed)).not.toMatch(/\w[.@]\w|:\/|\/\//)
      }),
    )
  })

  test('stays as it is if it is an ordinary name', () => {
    for (const name of ['Backer Board', 'Ærø – Café №5', '募集ボード']) expect(plainName(name)).toBe(name)
  })
})

describe('what an operator typed', () => {
  test('a subject has 1 to 150 characters', () => {
    for (const subject of [' ', 'x'.repeat(151)]) expect(checkSubject(subject)).toHaveProperty('reason')
    expect(checkSubject(' Version 1 ends – really ')).toEqual({ subject: 'Version 1 ends – really' })
  })

  test('a text is UTF-8 with line feeds, and of a bounded length', () => {
    expect(checkText(Buffer.from('one\r\n\ttwo 👩‍💻\n'))).toEqual({ text: 'one\n\ttwo 👩‍💻\n' })
    for (const bytes of ['', ' \n', 'x'.repeat(32 * 1024 + 1)].map(text => Buffer.from(text)))
      expect(checkText(bytes)).toHaveProperty('reason')
    expect(checkText(Buffer.of(0xff))).toHaveProperty('reason')
  })
})
