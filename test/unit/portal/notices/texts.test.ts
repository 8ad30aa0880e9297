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
  test('a subject that would end its header, or turn its direction, is refused', () => {
    for (const subject of [
      'a\nb',
      'a\r\nBcc: x@y.example',
      'a\u202eb',
      'a\u2028b',
      '\ud800',
      ' ',
      'x'.repeat(151),
    ]) {
      expect(checkSubject(subject)).toHaveProperty('reason')
    }
    expect(checkSubject(' Version 1 ends – really ')).toEqual({ subject: 'Version 1 ends – really' })
  })

  test('a text is UTF-8 with line feeds, tabs and nothing else that cannot be printed', () => {
    expect(checkText(Buffer.from('one\r\n\ttwo 👩‍💻\n'))).toEqual({ text: 'one\n\ttwo 👩‍💻\n' })
    for (const text of ['', ' \n', 'a\rb', 'a\u001b[2Jb', 'x'.repeat(32 * 1024 + 1)]) {
      expect(checkText(Buffer.from(text))).toHaveProperty('reason')
    }
  })
})
