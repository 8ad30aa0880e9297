import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ownPath } from '../../../../services/portal/sign-in/finish.ts'

const portal = 'https://portal.example'
const pieces = '/ // . .. %2e %2E%2e \\ \t @ : ? # evil.com https: a %2f'.split(' ')

test('whatever the text, a browser stays on the portal', () => {
  const paths = fc
    .array(fc.oneof(fc.constantFrom(...pieces), fc.string({ maxLength: 3 })))
    .map(parts => parts.join(''))
  fc.assert(
    fc.property(
      fc.oneof(
        paths,
        paths.map(path => `/${path}`),
      ),
      text => {
        const path = ownPath(text)
        if (path === undefined) return
        expect(new URL(path, `${portal}/sign-in/link`).origin).toBe(portal)
        expect(ownPath(path)).toBe(path)
      },
    ),
    { numRuns: 1_000, examples: [['/.//evil.com'], ['/\\evil.com']] },
  )
})
