/**
 * Strangers who use up the mails of an address do not lock out a person in a browser that was signed in before, and cannot
 * guess codes.
 */
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { mailLimits } from '../../../../services/portal/sign-in/mail-limits.ts'
import { startTestPortal, type TestPortal } from '../../../support/portal/app.ts'
import type { Browser } from '../../../support/portal/browser.ts'

const email = 'ada@example.com'
let portal: TestPortal
/** The last random bytes of this length: the portal makes its codes of 6. */
let drawn: Map<number, Uint8Array>
beforeEach(async () => {
  drawn = new Map()
  portal = await startTestPortal({
    options: { trustProxy: ['127.0.0.1'] },
    overrides: {
      randomBytes(count) {
        const bytes = randomBytes(count)
        drawn.set(count, bytes)
        return bytes
      },
    },
  })
})
afterEach(() => portal.close())

/** Whether a mail is sent to the browser that asks for one. */
async function getsMail(browser: Browser, network: string, address = email): Promise<boolean> {
  const before = portal.mailer.mails.length
  await browser.get('/sign-in')
  const answer = await browser.post('/sign-in', { email: address }, { 'x-forwarded-for': network })
  expect(answer).toMatchObject({ status: 303, location: '/sign-in/code' })
  return portal.mailer.mails.length > before
}

/** The code that was made last, also if no mail has it. */
function lastCode(): string {
  const number = Buffer.from(drawn.get(6) ?? []).readUIntBE(0, 6)
  return String(number % 1e8).padStart(8, '0')
}

async function enterCode(browser: Browser, code: string): Promise<number> {
  await browser.get('/sign-in/code')
  return (await browser.post('/sign-in/code', { code })).status
}

/** A browser that was signed in and signed out again. */
async function knownBrowser(): Promise<Browser> {
  const browser = portal.browser()
  await getsMail(browser, '192.0.2.1')
  const code = /^ {4}(\d{4} \d{4})$/m.exec(portal.mailer.mails.at(-1)?.text ?? '')?.[1] ?? ''
  await browser.get('/sign-in/code')
  expect((await browser.post('/sign-in/code', { code })).status).toBe(303)
  await browser.get('/account')
  expect((await browser.post('/sign-out')).status).toBe(303)
  return browser
}

async function useUpMails(address = email): Promise<void> {
  const stranger = portal.browser()
  for (let count = 0; count < mailLimits.address.max; count++)
    await getsMail(stranger, `198.51.100.${Math.floor(count / mailLimits.addressFromNetwork.max)}`, address)
  expect(await getsMail(portal.browser(), '203.0.113.1', address)).toBe(false)
}

test('beyond the limit no code signs in, because each request for a mail would allow more guesses', async () => {
  const allowed = portal.browser()
  expect(await getsMail(allowed, '192.0.2.1')).toBe(true)
  expect(await enterCode(allowed, lastCode())).toBe(303)
  await useUpMails()
  const stranger = portal.browser()
  expect(await getsMail(stranger, '203.0.113.2')).toBe(false)
  expect(await enterCode(stranger, lastCode())).toBe(400)
})

test('a browser that was signed in before gets mails, up to a bound of its own', async () => {
  const browser = await knownBrowser()
  await useUpMails()
  for (let count = 0; count < mailLimits.knownBrowser.max; count++)
    expect(await getsMail(browser, '192.0.2.1')).toBe(true)
  expect(await getsMail(browser, '192.0.2.1')).toBe(false)
})

test('the cookie is of no use for another address, and none can be made up', async () => {
  const browser = await knownBrowser()
  await useUpMails('bob@example.com')
  expect(await getsMail(browser, '192.0.2.1', 'bob@example.com')).toBe(false)
  const cookie = browser.cookies.get('pledgeview-known') ?? ''
  expect(cookie).toMatch(/^[\w-]{22}\.[\w-]{43}$/)
  await useUpMails()
  browser.cookies.set('pledgeview-known', `${cookie.startsWith('A') ? 'B' : 'A'}${cookie.slice(1)}`)
  expect(await getsMail(browser, '192.0.2.1')).toBe(false)
})

test('a portal behind https that trusts no proxy warns when it starts', async () => {
  const warning = 'PLEDGEVIEW_TRUST_PROXY is empty'
  expect(portal.log.join('')).not.toContain(warning)
  await portal.close()
  portal = await startTestPortal({ options: { portalUrl: 'https://portal.example' } })
  expect(portal.log.join('')).toContain(warning)
})
