/** The portal's HTTP edge: every answer is safe, what a stranger can send is bounded, and other names and sites get nothing. */
import { readFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDataDirectory } from '../../../services/embedded/data-directory.ts'
import { startEmbeddedService } from '../../../services/embedded/service.ts'
import { openAccounts } from '../../../services/portal/account/accounts.ts'
import { createCookies } from '../../../services/portal/http/cookies.ts'
import { serverOptions } from '../../../services/portal/http/server-options.ts'
import { createSessions } from '../../../services/portal/sign-in/sessions.ts'
import { openSqliteStore } from '../../../services/portal/store/sqlite-store.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createRuntime } from '../../../services/runtime/runtime.ts'
import { makeTestDirectory } from '../../support/clickhouse/embedded-tables.ts'
import { startTestPortal, type TestPortal } from '../../support/portal/app.ts'
import { type Browser, createBrowser } from '../../support/portal/browser.ts'
import { balancerConfiguration } from '../deploy/balancer.ts'

let portal: TestPortal
beforeEach(async () => {
  portal = await startTestPortal()
})
afterEach(() => portal.close())

/** The status of a GET with this Host. */
function statusFor(host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    httpRequest(`${portal.url}/sign-in`, { headers: { host } }, response => {
      response.resume()
      resolve(response.statusCode)
    })
      .on('error', reject)
      .end()
  })
}

/** What the portal answers to these bytes. */
async function answerTo(bytes: string): Promise<string> {
  const socket = connect(Number(new URL(portal.url).port), '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(bytes)
  return text(socket)
}

test('every answer has the security headers, errors too', async () => {
  const browser = portal.browser()
  for (const path of ['/static/portal.css', '/static/nothing', '/nothing', '/%E0%A4%A']) {
    const { status, headers } = await browser.get(path)
    expect({ path, status, policy: headers.get('content-security-policy') }).toEqual({
      path,
      status: expect.any(Number),
      policy: expect.stringContaining("default-src 'none'; style-src 'self'; script-src 'self'"),
    })
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('x-frame-options')).toBe('DENY')
  }
})

test('an unknown page is a page', async () => {
  const { status, headers, text } = await portal.browser().get('/<script>alert(1)</script>')
  expect(status).toBe(404)
  expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(text).not.toContain('<script>alert')
  expect(text).toContain('<h1>Not found</h1>')
})

test('a page has one style sheet, whole from the start: half of it would ask for what the policy refuses', async () => {
  const browser = portal.browser()
  const { text } = await browser.get('/')
  expect([...text.matchAll(/<link rel="stylesheet" href="([^"]+)">/g)].map(([, href]) => href)).toEqual([
    '/static/portal.css',
  ])
  const style = await browser.get('/static/portal.css')
  expect(style.headers.get('content-type')).toBe('text/css; charset=utf-8')
  // Pico's rules come first, so that the portal's own win.
  expect(style.text.indexOf('Pico CSS')).toBeGreaterThan(-1)
  expect(style.text.indexOf('Pico CSS')).toBeLessThan(style.text.indexOf('--pico-icon-valid: none'))
  const client = await fetch(`${portal.url}/static/pledgeview.py`)
  expect(client.headers.get('content-disposition')).toBe('attachment; filename="pledgeview.py"')
  expect(await client.text()).toContain('class Client:')
  const again = await fetch(`${portal.url}/static/portal.css`, {
    headers: { 'if-none-match': style.headers.get('etag') ?? '' },
  })
  expect([again.status, await again.text()]).toEqual([304, ''])
})

test.each([
  ...['evil.example', '127.0.0.1.evil.example:80', '[::2]'].map(host => [host, 421] as const),
  ...['localhost:1234', '127.0.0.1', '[::1]:8081'].map(host => [host, 200] as const),
])('a request for the name %s is answered with %d', async (host, status) => {
  expect(await statusFor(host)).toBe(status)
})

test('a request without a Host is refused', async () => {
  expect(await answerTo('GET /sign-in HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 421 /)
})

test('one address has a bounded number of connections, and its idle ones make room for new ones', async () => {
  const port = Number(new URL(portal.url).port)
  const open = async () => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write('GET /sign-in HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const isAnswered = await new Promise<boolean>(resolve => {
      socket.once('data', () => resolve(true))
      socket.once('close', () => resolve(false))
    })
    return { socket, isAnswered }
  }
  const opened: Awaited<ReturnType<typeof open>>[] = []
  for (let count = 0; count < 55; count++) opened.push(await open())
  expect(opened.filter(({ isAnswered }) => isAnswered)).toHaveLength(55)
  await expect.poll(() => opened.filter(({ socket }) => socket.destroyed)).toEqual(opened.slice(0, 5))
  for (const { socket } of opened) socket.destroy()
})

test('the balancer waits for an answer for longer than the portal lets a request be silent', async () => {
  const [, backend = ''] = (await readFile(balancerConfiguration, 'utf8')).split('\nbackend portal\n')
  const [, seconds] = /^ {2}timeout server (\d+)s$/m.exec(backend) ?? []
  expect(Number(seconds) * 1_000).toBeGreaterThan(serverOptions.connectionTimeout ?? 0)
})

test('only forms of a bounded size are read', async () => {
  const browser = portal.browser()
  expect((await browser.post('/sign-in', { email: 'a'.repeat(40_000) })).status).toBe(413)
  expect((await browser.post('/sign-in', {}, { 'content-type': 'application/json' })).status).toBe(415)
})

test.each([
  ['bytes that are no request', 'hello\r\n\r\n', 400],
  [
    'headers that are too large',
    `GET / HTTP/1.1\r\nHost: localhost\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`,
    431,
  ],
])('%s end the connection with an answer', async (_name, bytes, status) => {
  expect(await answerTo(bytes)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
})

/** The status of a form with these headers, sent to the portal's port. The address is wrong, so the form itself gets a 400. */
function statusOfForm(headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    httpRequest(`${portal.url}/sign-in`, { method: 'POST', headers: { ...type, ...headers } }, response => {
      response.resume()
      resolve(response.statusCode)
    })
      .on('error', reject)
      .end('email=nobody')
  })
}

test.each([
  [{ origin: 'https://evil.example' }],
  [{ origin: 'null' }],
  [{ origin: '' }],
  [{ origin: 'http://localhost:1' }],
  [{ origin: 'http://localhost' }],
  [{ origin: 'http://localhost:8091.evil.example' }],
  [{ origin: 'http://localhost:8091, https://evil.example' }],
  [{ origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' }],
  [{ origin: 'http://localhost:8091', 'sec-fetch-site': 'same-site' }],
  [{ 'sec-fetch-site': 'cross-site' }],
  [{ 'sec-fetch-site': 'same-origin, cross-site' }],
  [{ 'sec-fetch-site': '' }],
  [{}],
])('a form that does not come from a page of the portal is refused: %j', async headers => {
  expect(await statusOfForm({ host: 'localhost:8091', ...headers })).toBe(403)
})

test.each([
  [
    'http://localhost',
    'by another name, through a forward of another port',
    'localhost:8091',
    'http://localhost:8091',
  ],
  ['http://localhost', 'by its number', '127.0.0.1:8081', 'http://127.0.0.1:8081'],
  [
    'https://portal.example.com',
    'behind a proxy with TLS',
    'portal.example.com',
    'https://portal.example.com',
  ],
  [
    'https://portal.example.com:8443',
    'behind one that passes no port on',
    'portal.example.com',
    'https://portal.example.com:8443',
  ],
])('a form of %s is taken from a page that was opened %s', async (portalUrl, _how, host, origin) => {
  await portal.close()
  portal = await startTestPortal({
    options: { portalUrl, hosts: ['localhost', '127.0.0.1', 'portal.example.com'] },
  })
  for (const said of [{ origin }, { origin, 'sec-fetch-site': 'same-origin' }, { 'sec-fetch-site': 'none' }])
    expect(await statusOfForm({ host, ...said })).toBe(400)
  const otherScheme = origin.startsWith('https')
    ? origin.replace('https', 'http')
    : origin.replace('http', 'https')
  expect(await statusOfForm({ host, origin: otherScheme })).toBe(403)
})

test('no cache keeps a page that names a person', async () => {
  const kept = async ({ get }: Browser, path: string) => (await get(path)).headers.get('cache-control')
  const { browser } = await portal.signIn('ada@example.com')
  for (const path of ['/account', '/docs', '/nothing']) expect(await kept(browser, path)).toBe('no-store')
  const stranger = portal.browser()
  await stranger.post('/sign-in', { email: 'ada@example.com' })
  expect((await stranger.get('/sign-in/code')).text).toContain('ada@example.com')
  expect(await kept(stranger, '/sign-in/code')).toBe('no-store')
  expect(await kept(stranger, '/docs')).toBe('no-cache')
})

test('behind a proxy, an account that opens hundreds of pages at once does not keep the projector and the API of `npm start` waiting', async () => {
  const files = makeTestDirectory()
  const directory = openDataDirectory(files.path)
  const logger = pino({ level: 'silent' })
  const service = await startEmbeddedService({
    ...{
      directory,
      config: readConfig({ PLEDGEVIEW_TRUST_PROXY: '127.0.0.1' }),
      port: 0,
      opsPort: 0,
      logger,
    },
    portal: { port: 0, showMail: () => undefined },
  })
  const { tables, databases, writer, secrets } = service.model
  const store = openSqliteStore({ path: directory.portal, now: Date.now })
  const own = { ...createRuntime(logger), tables, databases, writer, store, portalKey: secrets.portalKey }
  const accounts = openAccounts(own)
  const account = await accounts.ofVerifiedEmail('ada@example.com')
  const url = service.portalUrl ?? ''
  const pages = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const browser = createBrowser(url)
      browser.cookies.set(
        createCookies(url).session.name,
        await createSessions({ ...own, accounts }).begin(account),
      )
      return Array.from({ length: 12 }, () => () => browser.get('/account'))
    }),
  )
  try {
    let answered = 0
    let isOver = false
    const asked = pages.flat().map(get => get().finally(() => answered++))
    const ended = Promise.allSettled(asked).then(() => {
      isOver = true
    })
    let meanwhileMax = 0
    while (!isOver) {
      const before = answered
      await tables.rows({ query: 'SELECT 1' })
      meanwhileMax = Math.max(meanwhileMax, answered - before)
    }
    await ended
    expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([200]))
    expect(meanwhileMax).toBeLessThan(asked.length / 4)
  } finally {
    await store.close()
    await service.close()
    files.remove()
  }
})
