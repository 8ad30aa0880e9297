import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { KeyError } from '../../../../services/api-keys/api-keys.ts'
import { beingDeleted } from '../../../../services/portal/account/accounts.ts'
import { PortalUnavailable } from '../../../../services/portal/own-events.ts'
import { MailError } from '../../../../services/portal/ports.ts'
import { mailLimits } from '../../../../services/portal/sign-in/mail-limits.ts'
import { TablesError } from '../../../../services/tables/port.ts'
import { startTestPortal, type TestPortal } from '../../../support/portal/app.ts'
import type { Browser } from '../../../support/portal/browser.ts'
import { sampleFields } from '../../../support/portal/memory-ports.ts'

let portal: TestPortal
beforeEach(async () => {
  portal = await startTestPortal()
})
afterEach(() => portal.close())

const day = 86_400_000

/** Asks for a mail and returns what it says. */
async function askForMail(browser: Browser, email = 'ada@example.com', next?: string) {
  const answer = await browser.post('/sign-in', { email, ...(next !== undefined && { next }) })
  const text = portal.mailer.mails.at(-1)?.text ?? ''
  const [link = '', token = ''] = /\/sign-in\/link\?token=(\S+)/.exec(text) ?? []
  return { answer, link, token, code: /^ {4}(\d{4} \d{4})$/m.exec(text)?.[1] ?? '' }
}

async function signIn(browser: Browser, email?: string) {
  const { code } = await askForMail(browser, email)
  const answer = await browser.post('/sign-in/code', { code })
  expect(answer.status).toBe(303)
  return answer
}

const isSignedIn = async (browser: Browser) => (await browser.get('/account')).status === 200

describe('the mailed link', () => {
  test('signs in whoever presses its button, in any browser, however often a mail scanner opens it, and leads to where the person wanted to go', async () => {
    const { link, token } = await askForMail(portal.browser(), 'ada@example.com', '/account?from=mail')
    for (let count = 0; count < 5; count++) expect((await portal.browser().get(link)).status).toBe(200)
    const other = portal.browser()
    expect((await other.get(link)).text).toContain('ada@example.com')
    const answer = await other.post('/sign-in/link', { token })
    expect(answer).toMatchObject({ status: 303, location: '/account?from=mail' })
    expect((await other.get('/account')).text).toContain('ada@example.com')
  })

  test('works once, also if two browsers use it at once, and it ends the code', async () => {
    const asking = portal.browser()
    const { token, code } = await askForMail(asking)
    const browsers = [portal.browser(), portal.browser(), portal.browser()]
    const statuses = await Promise.all(
      browsers.map(async browser => (await browser.post('/sign-in/link', { token })).status),
    )
    expect(statuses.sort()).toEqual([303, 410, 410])
    expect((await asking.post('/sign-in/code', { code })).status).toBe(410)
  })

  test.each(['link', 'code'] as const)(
    'and the code lead to the keys if the form of the %s is sent once more',
    async by => {
      const browser = portal.browser()
      const { token, code } = await askForMail(browser)
      for (let count = 0; count < 2; count++) {
        const answer = await browser.post(`/sign-in/${by}`, { token, code })
        expect(answer).toMatchObject({ status: 303, location: '/access' })
      }
    },
  )

  test('ends after 15 minutes', async () => {
    const browser = portal.browser()
    const { link, code } = await askForMail(browser)
    portal.clock.advance(15 * 60_000)
    expect((await browser.get(link)).status).toBe(410)
    expect((await browser.post('/sign-in/code', { code })).status).toBe(410)
  })

  test('with another token signs nobody in', async () => {
    const browser = portal.browser()
    const { link } = await askForMail(browser)
    const forged = `${link.slice(0, -1)}${link.endsWith('A') ? 'B' : 'A'}`
    expect((await browser.get(forged)).status).toBe(410)
  })
})

describe('the mailed code', () => {
  test('is of no use in another browser', async () => {
    const { code } = await askForMail(portal.browser())
    const other = portal.browser()
    expect((await other.post('/sign-in/code', { code })).status).toBe(410)
  })

  test.each([
    ['Arabic', '٠١٢٣٤٥٦٧٨٩'],
    ['Persian', '۰۱۲۳۴۵۶۷۸۹'],
  ])('may have the digits of a keypad in %s, between invisible marks', async (_keypad, digits) => {
    const browser = portal.browser()
    const { code } = await askForMail(browser)
    const typed = `\u200f${code.replaceAll(/\d/g, digit => digits[Number(digit)] ?? '')}\u200e`
    expect(await browser.post('/sign-in/code', { code: typed })).toMatchObject({ status: 303 })
  })

  test('can be tried five times, also at once; wrong ones do not end the link', async () => {
    const browser = portal.browser()
    const { code, token } = await askForMail(browser)
    const wrong = code === '0000 0000' ? '00000001' : '00000000'
    await Promise.all(Array.from({ length: 8 }, () => browser.post('/sign-in/code', { code: wrong })))
    expect((await browser.post('/sign-in/code', { code })).status).toBe(410)
    expect((await browser.post('/sign-in/link', { token })).location).toBe('/access')
  })
})

describe('asking for a mail', () => {
  test('is answered the same for an address with an account and without', async () => {
    await signIn(portal.browser(), 'known@example.com')
    const answers = []
    for (const email of ['known@example.com', 'unknown@example.com']) {
      const browser = portal.browser()
      const { answer } = await askForMail(browser, email)
      const page = (await browser.get('/sign-in/code')).text
      // It repeats what was typed in this browser.
      expect(page).toContain(`a link to <strong>${email}</strong>`)
      answers.push({ ...answer, headers: undefined, page: page.replace(email, '') })
    }
    const blank = (text = '') => text.replaceAll(/value="[^"]*"/g, '')
    expect(blank(JSON.stringify(answers[0]).replaceAll('\\"', '"'))).toBe(
      blank(JSON.stringify(answers[1]).replaceAll('\\"', '"')),
    )
  })

  test('is what the page of the code needs: others are led to the first page, and the signed-in to their keys', async () => {
    const browser = portal.browser()
    expect(await browser.get('/sign-in/code')).toMatchObject({ status: 303, location: '/sign-in' })
    await signIn(browser)
    expect(await browser.get('/sign-in/code')).toMatchObject({ status: 303, location: '/access' })
  })

  test('refuses what is no address, and shows it escaped', async () => {
    const { answer } = await askForMail(
      portal.browser(),
      '"><script>alert(1)</script>\r\nBcc: eve@example.com',
    )
    expect(answer.status).toBe(400)
    expect(answer.text).toContain('&#34;&#62;&#60;script&#62;')
    expect(answer.text).not.toContain('<script>alert')
    expect(portal.mailer.mails).toEqual([])
  })

  test('that fails leaves a mail that comes late with a code that works', async () => {
    portal.mailer.send = async mail => {
      portal.mailer.mails.push(mail)
      throw new MailError('no answer within 15000 ms')
    }
    const browser = portal.browser()
    const { answer, code } = await askForMail(browser)
    expect(answer.status).toBe(503)
    expect(answer.text).toContain('If it comes late, its link works')
    expect(await browser.post('/sign-in/code', { code })).toMatchObject({ status: 303, location: '/access' })
  })

  test('counts also if the mail could not be sent, because it may come late, and the page says so', async () => {
    const browser = portal.browser()
    portal.mailer.fail(new Error('the server is away'))
    for (let count = 0; count < mailLimits.addressFromNetwork.max; count++) await askForMail(browser)
    portal.mailer.fail(undefined)
    expect((await askForMail(browser)).answer.location).toBe('/sign-in/code')
    expect(portal.mailer.mails).toEqual([])
    expect((await browser.get('/sign-in/code')).text).toContain('those that could not be sent count, too')
  })
})

test('signing in leads to no other site', async () => {
  const browser = portal.browser()
  const { token } = await askForMail(browser, 'ada@example.com', '//evil.example/')
  expect((await browser.post('/sign-in/link', { token })).location).toBe('/access')
})

describe('a session', () => {
  test('ends seven days after its last use', async () => {
    const browser = portal.browser()
    await signIn(browser)
    portal.clock.advance(7 * day - 1)
    expect(await isSignedIn(browser)).toBe(true)
    portal.clock.advance(7 * day - 1)
    expect(await isSignedIn(browser)).toBe(true)
    portal.clock.advance(7 * day)
    expect(await isSignedIn(browser)).toBe(false)
  })

  test('ends after 30 days, however much it is used', async () => {
    const browser = portal.browser()
    await signIn(browser)
    for (let count = 0; count < 29; count++) {
      portal.clock.advance(day)
      expect(await isSignedIn(browser)).toBe(true)
    }
    portal.clock.advance(day)
    expect(await isSignedIn(browser)).toBe(false)
  })

  test('that began while the clock was a year ahead ends when the clock is right again, and so do links and codes', async () => {
    const [browser, other] = [portal.browser(), portal.browser()]
    portal.clock.advance(365 * day)
    await signIn(browser)
    const { link, code } = await askForMail(other)
    portal.clock.advance(-365 * day)
    expect(await isSignedIn(browser)).toBe(false)
    expect((await other.get(link)).status).toBe(410)
    expect((await other.post('/sign-in/code', { code })).status).toBe(410)
    await signIn(browser)
    expect(await isSignedIn(browser)).toBe(true)
    // Nor are they good again when the time has come.
    portal.clock.advance(365 * day)
    expect((await other.get(link)).status).toBe(410)
  })

  test('has a new id after every sign-in: the former one, or one that somebody planted before, is worth nothing', async () => {
    const browser = portal.browser()
    const planted = 'A'.repeat(43)
    browser.cookies.set('pledgeview', planted)
    await signIn(browser)
    const former = browser.cookies.get('pledgeview') ?? ''
    const { token } = await askForMail(portal.browser())
    await browser.post('/sign-in/link', { token })
    expect(await isSignedIn(browser)).toBe(true)
    const thief = portal.browser()
    for (const id of [planted, former]) {
      thief.cookies.set('pledgeview', id)
      expect(await isSignedIn(thief)).toBe(false)
    }
  })

  test('ends with signing out, and only this one; with signing out everywhere all of the account end', async () => {
    const [here, there, other] = [portal.browser(), portal.browser(), portal.browser()]
    await signIn(here)
    await signIn(there)
    await signIn(other, 'bob@example.com')
    const signedIn = async () => [await isSignedIn(here), await isSignedIn(there), await isSignedIn(other)]
    const cookie = here.cookies.get('pledgeview') ?? ''
    expect(await here.post('/sign-out')).toMatchObject({ status: 303, location: '/' })
    here.cookies.set('pledgeview', cookie)
    expect(await signedIn()).toEqual([false, true, true])
    await signIn(here)
    const second = here.cookies.get('pledgeview') ?? ''
    expect((await here.post('/sign-out-everywhere')).status).toBe(303)
    here.cookies.set('pledgeview', second)
    expect(await signedIn()).toEqual([false, false, true])
    await signIn(here)
    expect(await isSignedIn(here)).toBe(true)
  })

  test('has a cookie that scripts cannot read and other sites do not send', async () => {
    const browser = portal.browser()
    const cookie = (await signIn(browser)).headers.getSetCookie().find(line => line.startsWith('pledgeview='))
    expect(cookie).toMatch(/; Path=\/; HttpOnly; SameSite=Lax$/)
  })
})

test('behind https cookies are Secure and bound to the host', async () => {
  await portal.close()
  const origin = 'https://portal.example'
  portal = await startTestPortal({ options: { portalUrl: origin } })
  const answer = await portal.browser().post('/sign-in', { email: 'ada@example.com' }, { origin })
  expect(answer.headers.getSetCookie()[0]).toMatch(
    /^__Host-pledgeview-sign-in=[\w-]{22}; Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  )
  expect(answer.headers.get('strict-transport-security')).toBe('max-age=31536000')
})

test('no code, link, session or address gets into the log', async () => {
  const browser = portal.browser()
  const { code, link, token } = await askForMail(browser, 'ada@example.com')
  await browser.get(link)
  await browser.post('/sign-in/code', { code })
  portal.mailer.fail(new Error('the server is away'))
  await askForMail(portal.browser(), 'ada@example.com')
  const log = portal.log.join('')
  expect(log).toContain('"route":"/sign-in/link"')
  for (const secret of [token, code.replace(' ', ''), browser.cookies.get('pledgeview') ?? 'none', 'ada@'])
    expect(log).not.toContain(secret)
})

describe('deleting the account', () => {
  test('asks once more, revokes the keys, deletes the account and ends all its sessions', async () => {
    const [here, there] = [portal.browser(), portal.browser()]
    await signIn(here)
    await signIn(there)
    await portal.keys.issue('ada@example.com', sampleFields)
    const question = await here.get('/account/delete')
    expect(question.text).toContain('one key')
    expect(portal.accounts.all.size).toBe(1)
    const cookie = here.cookies.get('pledgeview') ?? ''
    expect(await here.post('/account/delete')).toMatchObject({ status: 303, location: '/account/deleted' })
    expect(portal.accounts.all.size).toBe(0)
    expect(portal.keys.all).toEqual([])
    here.cookies.set('pledgeview', cookie)
    expect([await isSignedIn(here), await isSignedIn(there)]).toEqual([false, false])
    // The same person comes back: the sessions of before stay dead.
    await signIn(portal.browser())
    expect(await isSignedIn(there)).toBe(false)
  })

  test('lets the person sign in again a moment later, and says so until then', async () => {
    const browser = portal.browser()
    const { code } = await askForMail(browser)
    portal.accounts.ofVerifiedEmail = () => Promise.reject(beingDeleted())
    const answer = await browser.post('/sign-in/code', { code })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '60'])
    expect(answer.text).toContain('being deleted')
  })

  test('that may land late is not told to be tried again: once it has landed, that would make a new account', async () => {
    const browser = portal.browser()
    await signIn(browser)
    portal.accounts.delete = () => Promise.reject(new PortalUnavailable('no projector has read it'))
    const { status, text } = await browser.post('/account/delete')
    expect(status).toBe(503)
    expect(text).toContain('do not sign in')
    expect(text).not.toContain('Try again')
    expect(portal.log.join('')).toContain('no projector has read it')
  })

  test.each([
    ['no projector has read it', new KeyError('no projector has read it within 15 s')],
    ['the tables are away', new TablesError('away', { retryable: true })],
  ])('is answered as done although the keys are left, because %s', async (_why, error) => {
    const browser = portal.browser()
    await signIn(browser)
    portal.keys.deleteAll = () => Promise.reject(error)
    expect(await browser.post('/account/delete')).toMatchObject({ status: 303, location: '/account/deleted' })
    expect(portal.accounts.all.size).toBe(0)
    expect([...browser.cookies.keys()]).toEqual([])
  })
})
