/** Signing in through a real OpenID Connect provider (oidc-provider). */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import Provider from 'oidc-provider'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { callbackBound } from '../../../../services/portal/sign-in/oidc.ts'
import { freePort } from '../../../../services/runtime/free-port.ts'
import { startTestPortal, type TestPortal } from '../../../support/portal/app.ts'
import { type Browser, createBrowser } from '../../../support/portal/browser.ts'

let portal: TestPortal
let server: Server
let issuer: string

const people: Record<string, { email?: string; email_verified?: boolean }> = {
  ada: { email: 'Ada@Example.com', email_verified: true },
  mallory: { email: 'ada@example.com', email_verified: false },
  nobody: {},
}

beforeAll(async () => {
  const [portalPort, issuerPort] = [await freePort(), await freePort()]
  issuer = `http://127.0.0.1:${issuerPort}`
  const portalUrl = `http://127.0.0.1:${portalPort}`
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'portal',
        client_secret: 'a secret of the tests',
        redirect_uris: [`${portalUrl}/sign-in/provider/callback`],
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    findAccount: (_context, id) => ({ accountId: id, claims: async () => ({ sub: id, ...people[id] }) }),
    pkce: { required: () => true },
    cookies: { keys: ['a key of the tests'] },
  })
  server = createServer(provider.callback())
  await new Promise<void>(resolve => server.listen(issuerPort, '127.0.0.1', resolve))
  portal = await startTestPortal({
    port: portalPort,
    options: { oidc: { issuer, clientId: 'portal', clientSecret: 'a secret of the tests' } },
  })
})

afterAll(async () => {
  await portal?.close()
  server?.closeAllConnections()
  server?.close()
})

/** Follows the provider's pages of development: signs in there, and consents. Returns the callback's address. */
async function atProvider(address: string, login: string): Promise<string> {
  const browser = createBrowser(issuer)
  let answer = await browser.get(address)
  for (let steps = 0; steps < 12; steps++) {
    if (answer.location?.startsWith(portal.url)) return answer.location
    if (answer.location !== undefined) {
      answer = await browser.get(answer.location)
      continue
    }
    const action = /<form[^>]* action="([^"]*)"/.exec(answer.text)?.[1] ?? ''
    const prompt = /name="prompt" value="(\w+)"/.exec(answer.text)?.[1] ?? 'login'
    answer = await browser.post(action, { prompt, login, password: 'any' })
  }
  throw new Error(`the provider did not come to an end: ${answer.status} ${answer.text.slice(0, 500)}`)
}

async function callbackOf(browser: Browser, login: string, next = '/account'): Promise<string> {
  const begun = await browser.get(`/sign-in/provider?next=${encodeURIComponent(next)}`)
  expect(begun.status).toBe(303)
  return atProvider(begun.location ?? '', login)
}

test('a person of the provider signs in, with the address that the provider verified', async () => {
  const browser = portal.browser()
  const answer = await browser.get(await callbackOf(browser, 'ada'))
  expect(answer).toMatchObject({ status: 303, location: '/account' })
  expect((await browser.get('/account')).text).toContain('ada@example.com')
})

test.each(['mallory', 'nobody'])('%s, whose address nobody verified, does not sign in', async login => {
  const browser = portal.browser()
  const answer = await browser.get(await callbackOf(browser, login))
  expect(answer.status).toBe(403)
  expect((await browser.get('/account')).status).toBe(303)
})

test('the answer of the provider counts only in the browser that began, and once', async () => {
  const [browser, other] = [portal.browser(), portal.browser()]
  const callback = await callbackOf(browser, 'ada')
  expect((await other.get(callback)).status).toBe(400)
  await other.get('/sign-in/provider')
  expect((await other.get(callback)).status).toBe(400)
  expect((await browser.get(callback)).status).toBe(303)
  expect((await browser.get(callback)).status).toBe(400)
})

test('a person who cancels at the provider is back at the sign-in, and no answer of the provider is an error of the portal', async () => {
  const answered = async (error: string, change: Record<string, string> = {}) => {
    const browser = portal.browser()
    const begun = await browser.get('/sign-in/provider')
    const state = new URL(begun.location ?? '').searchParams.get('state') ?? ''
    portal.log.length = 0
    const { status, location } = await browser.get(
      `/sign-in/provider/callback?${new URLSearchParams({ error, state, iss: issuer, ...change })}`,
    )
    const levels = portal.log.map(line => JSON.parse(line).level).filter(level => level >= 40)
    return { status, location, levels }
  }
  expect(await answered('access_denied')).toEqual({ status: 303, location: '/sign-in', levels: [] })
  expect(await answered('server_error')).toMatchObject({ status: 503, levels: [40] })
  const ofAnother = { state: 'of another' }
  expect(await answered('access_denied', ofAnother)).toMatchObject({ status: 400, levels: [] })
})

test('of two tabs that began, the later one signs in, also if the provider answers the earlier one first', async () => {
  const browser = portal.browser()
  const [earlier, later] = [await callbackOf(browser, 'ada'), await callbackOf(browser, 'ada')]
  expect((await browser.get(earlier)).status).toBe(400)
  expect(await browser.get(later)).toMatchObject({ status: 303, location: '/account' })
})

test('a cookie that was changed is not believed', async () => {
  const browser = portal.browser()
  const callback = await callbackOf(browser, 'ada')
  const cookie = browser.cookies.get('pledgeview-provider') ?? ''
  browser.cookies.set('pledgeview-provider', `A${cookie}`)
  expect((await browser.get(callback)).status).toBe(400)
  // As many letters as the seal has, but more bytes.
  const [text = '', seal = ''] = cookie.split('.')
  browser.cookies.set('pledgeview-provider', `${text}.${'%C3%A9'.repeat(seal.length)}`)
  expect((await browser.get(callback)).status).toBe(400)
})

/** A portal whose provider answers like this to what it is asked besides its configuration, which has `more` in it, packed. */
async function portalOf({ more = '', answer }: { more?: string; answer?: () => object } = {}) {
  const provider = createServer(({ url = '' }, response) => {
    const issuer = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`
    const endpoints = { authorization_endpoint: `${issuer}/auth`, token_endpoint: `${issuer}/token` }
    const body = url === '/token' ? answer?.() : { issuer, ...endpoints, more }
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    response.writeHead(url === '/token' ? 400 : 200, headers).end(gzipSync(JSON.stringify(body)))
  })
  await new Promise<void>(resolve => provider.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`
  const oidc = { issuer, clientId: 'portal', clientSecret: 'a secret of the tests' }
  const other = await startTestPortal({ options: { oidc } })
  onTestFinished(async () => {
    await other.close()
    provider.closeAllConnections()
    provider.close()
  })
  return other.browser()
}

test('an answer of the provider that is too large is not read, also if it is small before it is unpacked', async () => {
  const browser = await portalOf({ more: 'x'.repeat(8 * 1024 ** 2) })
  expect((await browser.get('/sign-in/provider')).status).toBe(503)
})

test('a callback that is sent again and again reaches the provider only so often', async () => {
  let asked = 0
  const answer = () => {
    asked++
    return { error: 'invalid_grant' }
  }
  const browser = await portalOf({ answer })
  const begun = await browser.get('/sign-in/provider')
  const state = new URL(begun.location ?? '').searchParams.get('state') ?? ''
  const cookie = browser.cookies.get('pledgeview-provider') ?? ''
  const replay = async () => {
    browser.cookies.set('pledgeview-provider', cookie)
    return (await browser.get(`/sign-in/provider/callback?code=any&state=${state}`)).status
  }
  const answers: number[] = []
  for (let n = 0; n <= callbackBound.max; n++) answers.push(await replay())
  expect(answers).toEqual([...Array(callbackBound.max).fill(503), 429])
  expect(asked).toBe(callbackBound.max)
})
