/**
 * Strangers who use up the mails of an address do not lock out a person in a browser that was signed in before. That they cannot guess
 * codes: test/unit/portal/sign-in/attempts.test.ts.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { mailLimits } from '../../../../services/portal/sign-in/mail-limits.ts'
import { startTestPortal, type TestPortal } from '../../../support/portal/app.ts'
import type { Browser } from '../../../support/portal/browser.ts'

const email = 'ada@example.com'
let portal: TestPortal
beforeEach(async () => {
  portal = await startTestPortal({ options: { PLEDGEVIEW_TRUST_PROXY: ['127.0.0.1'] } })
})
afterEach(() => portal.close())

/** Whether a mail is sent to the browser that asks for one. */
async function getsMail(browser: Browser, network: string, address = email): Promise<boolean> {
  const before = portal.mailer.mails.length
  const answer = await browser.post('/sign-in', { email: address }, { 'x-forwarded-for': network })
  expect(answer).toMatchObject({ status: 303, location: '/sign-in/code' })
  return portal.mailer.mails.length > before
}

/** A browser that was signed in and signed out again. */
async function knownBrowser(): Promise<Browser> {
  const browser = portal.browser()
  await getsMail(browser, '192.0.2.1')
  const code = /^ {4}(\d{4} \d{4})$/m.exec(portal.mailer.mails.at(-1)?.text ?? '')?.[1] ?? ''
  expect((await browser.post('/sign-in/code', { code })).status).toBe(303)
  expect((await browser.post('/sign-out')).status).toBe(303)
  return browser
}

async function useUpMails(address = email): Promise<void> {
  const stranger = portal.browser()
  for (let count = 0; count < mailLimits.address.max; count++)
    await getsMail(stranger, `198.51.100.${Math.floor(count / mailLimits.addressFromNetwork.max)}`, address)
  expect(await getsMail(portal.browser(), '203.0.113.1', address)).toBe(false)
}

test('a browser that was signed in before gets mails, up to a bound of all such browsers of the address', async () => {
  const browser = await knownBrowser()
  const other = await knownBrowser()
  await useUpMails()
  for (let count = 0; count < mailLimits.knownBrowser.max; count++)
    expect(await getsMail(browser, '192.0.2.1')).toBe(true)
  expect(await getsMail(browser, '192.0.2.1')).toBe(false)
  expect(await getsMail(other, '192.0.2.2')).toBe(false)
})

test('beyond that bound, it is like any other: its network has an end', async () => {
  const browser = await knownBrowser()
  const ask = () => browser.post('/sign-in', { email }, { 'x-forwarded-for': '192.0.2.1' })
  for (let count = 1; count < mailLimits.knownBrowser.max + mailLimits.network.max; count++)
    expect((await ask()).status).toBe(303)
  expect((await ask()).status).toBe(429)
})

test('a browser that was signed in before gets mails, although its network has had those of the hour', async () => {
  const browser = await knownBrowser()
  const stranger = portal.browser()
  for (let count = 1; count < mailLimits.network.max; count++)
    expect(await getsMail(stranger, '192.0.2.1', `${count}@example.com`)).toBe(true)
  const refused = await stranger.post('/sign-in', { email }, { 'x-forwarded-for': '192.0.2.1' })
  expect([refused.status, refused.text]).toEqual([429, expect.stringContaining('in an hour')])
  expect(await getsMail(browser, '192.0.2.1')).toBe(true)
  portal.clock.advance(Number(refused.headers.get('retry-after')) * 1000)
  expect(await getsMail(stranger, '192.0.2.1')).toBe(true)
})

test('one network cannot use up the mails of an address, however long it goes on asking: another one gets mails', async () => {
  const stranger = portal.browser()
  for (const pauseMs of [0, 901_000, 901_000, 901_000]) {
    portal.clock.advance(pauseMs)
    for (let count = 0; count < mailLimits.address.max / 4; count++) await getsMail(stranger, '192.0.2.1')
  }
  expect(await getsMail(portal.browser(), '203.0.113.1')).toBe(true)
})

test('the cookie is of no use for another address, and none can be made up', async () => {
  const browser = await knownBrowser()
  await useUpMails('bob@example.com')
  expect(await getsMail(browser, '192.0.2.1', 'bob@example.com')).toBe(false)
  const cookie = browser.cookies.get('pledgeview-known') ?? ''
  expect(cookie).toMatch(/^[\w-]{43}$/)
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
