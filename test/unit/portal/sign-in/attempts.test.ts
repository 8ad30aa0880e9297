import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  type Attempts,
  addressTries,
  codeTriesMax,
  createAttempts,
} from '../../../../services/portal/sign-in/attempts.ts'
import type { PortalStore } from '../../../../services/portal/store/port.ts'
import { openSqliteStore } from '../../../../services/portal/store/sqlite-store.ts'
import { memoryAccounts } from '../../../support/portal/memory-ports.ts'

const signIn = { email: 'ada@example.com', next: undefined }
let store: PortalStore
let attempts: Attempts
let now = 0
let accounts: ReturnType<typeof memoryAccounts>
beforeEach(() => {
  store = openSqliteStore({ path: ':memory:', now: () => now })
  accounts = memoryAccounts(() => now)
  attempts = createAttempts(store, accounts, '0'.repeat(64), () => now)
})
afterEach(() => store.close())

const wrongOf = (code: string) => (code === '00000000' ? '00000001' : '00000000')

/** Tries wrong codes of new attempts of the address, this many. */
async function tryWrongCodes(count: number): Promise<void> {
  for (let tries = 0; tries < count; tries += codeTriesMax) {
    const { id, code } = await attempts.begin(signIn, { isMailed: true })
    for (let left = Math.min(codeTriesMax, count - tries); left > 0; left--)
      await attempts.useCode(id, wrongOf(code))
  }
}

test('a sign-in whose mail is not sent answers like any other, but no code and no link matches it', async () => {
  const { id, code, link } = await attempts.begin(signIn, { isMailed: false })
  const answers = []
  for (let tries = 0; tries < codeTriesMax; tries++) answers.push(await attempts.useCode(id, code))
  expect(answers).toEqual(['wrong', 'wrong', 'wrong', 'wrong', 'over'])
  expect(await attempts.useLink(link)).toBeUndefined()
})

test('the codes of an address can be tried 50 times an hour, however many are asked for; its links keep working', async () => {
  await tryWrongCodes(addressTries.max - 1)
  const last = await attempts.begin(signIn, { isMailed: true })
  expect(await attempts.useCode(last.id, last.code)).toEqual(signIn)
  const beyond = await attempts.begin(signIn, { isMailed: true })
  expect(await attempts.useCode(beyond.id, beyond.code)).toBe('wrong')
  expect(await attempts.useLink(beyond.link)).toEqual(signIn)
  const other = await attempts.begin({ ...signIn, email: 'bob@example.com' }, { isMailed: true })
  expect(await attempts.useCode(other.id, other.code)).toMatchObject({ email: 'bob@example.com' })
  now += addressTries.windowMs
  const later = await attempts.begin(signIn, { isMailed: true })
  expect(await attempts.useCode(later.id, later.code)).toEqual(signIn)
})

test('a link and a code are not spent while the account cannot be read', async () => {
  const { id, code, link } = await attempts.begin(signIn, { isMailed: true })
  const { ofVerifiedEmail } = accounts
  accounts.ofVerifiedEmail = () => Promise.reject(new Error('the log is away'))
  await expect(attempts.useLink(link)).rejects.toThrow('away')
  await expect(attempts.useCode(id, code)).rejects.toThrow('away')
  accounts.ofVerifiedEmail = ofVerifiedEmail
  expect(await attempts.useCode(id, code)).toEqual(signIn)
  expect(await attempts.useLink(link)).toBeUndefined()
})
