/** The portal's HTTP edge: every answer is safe, what a stranger can send is bounded, and other names and sites get nothing. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDataDirectory } from '../../../services/embedded/data-directory.ts'
import { startEmbeddedService } from '../../../services/embedded/service.ts'
import { serverOptions } from '../../../services/portal/http/server-options.ts'
import type { Mail } from '../../../services/portal/ports.ts'
import { requestBound } from '../../../services/portal/sign-in/sessions.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { makeTestDirectory } from '../../support/clickhouse/embedded-tables.ts'
import { startTestPortal, type TestPortal } from '../../support/portal/app.ts'
import { type Browser, createBrowser } from '../../support/portal/browser.ts'
import { connectRaw, sendRaw } from '../../support/query/raw-http.ts'
import { balancerConfiguration } from '../deploy/balancer.ts'

let portal: TestPortal
beforeEach(async () => {
  portal = await startTestPortal()
})
afterEach(() => portal.close())

/** The status of a request with these headers, sent to the portal's port. The address in a form is wrong, so it gets a 400. */
async function statusOf(method: 'GET' | 'POST', headers: Record<string, string>): Promise<number> {
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  const sent = httpRequest(`${portal.url}/sign-in`, { method, headers: { ...type, ...headers } })
  sent.end(method === 'POST' ? 'email=nobody' : undefined)
  const [response] = await once(sent, 'response')
  return response.resume().statusCode
}

/** What the portal answers to these bytes. */
async function answerTo(bytes: string): Promise<string> {
  const socket = connect(Number(new URL(portal.url).port), '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(bytes)
  return text(socket)
}

test('every answer has the security headers, errors too, and an unknown page is a page', async () => {
  const browser = portal.browser()
  const { status, text } = await browser.get('/<script>alert(1)</script>')
  expect([status, text]).toEqual([404, expect.stringContaining('<h1>Not found</h1>')])
  expect(text).not.toContain('<script>alert')
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

test('a file is asked for anew with each page, and then not sent again; the client for Python is downloaded', async () => {
  const script = await portal.browser().get('/static/try-it.js')
  expect(script.headers.get('etag')).toBeTruthy()
  const style = await portal.browser().get('/static/portal.css')
  for (const { headers } of [script, style]) expect(headers.get('cache-control')).toBe('public, max-age=0')
  const etag = style.headers.get('etag') ?? ''
  // A proxy that compresses it makes the tag a weak one.
  for (const known of [etag, `W/${etag}`]) {
    const again = await portal.browser().get('/static/portal.css', { 'if-none-match': known })
    expect([again.status, again.text]).toEqual([304, ''])
  }
  const client = await portal.browser().get('/static/pledgeview.py')
  expect(client.headers.get('content-disposition')).toBe('attachment; filename="pledgeview.py"')
  expect(client.text).toContain('class Client:')
})

test.each([
  ...['evil.example', '127.0.0.1.evil.example:80', '[::2]'].map(host => [host, 421] as const),
  ...['localhost:1234', '127.0.0.1', '[::1]:8081'].map(host => [host, 200] as const),
])('a request for the name %s is answered with %d', async (host, status) => {
  expect(await statusOf('GET', { host })).toBe(status)
})

test('a request without a Host is refused', async () => {
  expect(await answerTo('GET /sign-in HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 421 /)
})

test('one address has a bounded number of connections, and its idle ones make room for new ones', async () => {
  const port = Number(new URL(portal.url).port)
  const opened = await Promise.all(Array.from({ length: 50 }, () => connectRaw(port)))
  const request = 'GET /sign-in HTTP/1.1\r\nHost: localhost\r\n\r\n'
  for (const connection of opened) {
    connection.send(request)
    expect(await connection.next()).toMatchObject({ status: 200 })
  }
  expect(await sendRaw(port, request)).toMatchObject([{ status: 200 }])
  expect(await opened[0]?.next()).toBeUndefined()
  for (const connection of opened) connection.close()
})

test('the balancer waits for an answer for longer than the portal lets a request be silent', async () => {
  const [, backend = ''] = (await readFile(balancerConfiguration, 'utf8')).split('\nbackend portal\n')
  const [, seconds] = /^ {2}timeout server (\d+)s$/m.exec(backend) ?? []
  expect(Number(seconds) * 1_000).toBeGreaterThan(serverOptions.connectionTimeout ?? 0)
})

test('the portal keeps an idle connection for longer than a proxy does', () => {
  // nginx and many balancers keep an idle connection for 60 s. A form that is sent on one that ends gets a 502.
  expect(serverOptions.keepAliveTimeout).toBeGreaterThan(60_000)
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

test.each([
  [{ origin: 'https://evil.example' }],
  [{ origin: 'null' }],
  [{ origin: 'null', 'sec-fetch-site': 'cross-site' }],
  [{ origin: 'null', 'sec-fetch-site': 'none' }],
  [{ origin: 'http://localhost:1' }],
  [{ origin: 'http://localhost:8091.evil.example' }],
  [{ origin: 'http://localhost:8091, https://evil.example' }],
  [{ origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' }],
  [{ origin: 'http://localhost:8091', 'sec-fetch-site': 'same-site' }],
  [{ 'sec-fetch-site': 'cross-site' }],
  [{}],
])('a form that does not come from a page of the portal is refused: %j', async headers => {
  expect(await statusOf('POST', { host: 'localhost:8091', ...headers })).toBe(403)
})

test.each([
  // By another name, through a forward of another port; by its number.
  ['http://localhost', 'localhost:8091', 'http://localhost:8091'],
  ['http://localhost', '127.0.0.1:8081', 'http://127.0.0.1:8081'],
  // Behind a proxy with TLS, and behind one that passes no port on.
  ['https://portal.example', 'portal.example', 'https://portal.example'],
  ['https://portal.example:8443', 'portal.example', 'https://portal.example:8443'],
])('a form of %s is taken from a page of the host %s with the origin %s', async (portalUrl, host, origin) => {
  await portal.close()
  portal = await startTestPortal({
    options: { portalUrl, hosts: ['localhost', '127.0.0.1', 'portal.example'] },
  })
  for (const said of [
    ...[{ origin }, { origin, 'sec-fetch-site': 'same-origin' }, { 'sec-fetch-site': 'none' }],
    // As Chromium sends it if a proxy adds `Referrer-Policy: no-referrer`.
    { origin: 'null', 'sec-fetch-site': 'same-origin' },
  ])
    expect(await statusOf('POST', { host, ...said })).toBe(400)
  const otherScheme = origin.startsWith('https')
    ? origin.replace('https', 'http')
    : origin.replace('http', 'https')
  expect(await statusOf('POST', { host, origin: otherScheme })).toBe(403)
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
  const mails: Mail[] = []
  const service = await startEmbeddedService({
    ...{ directory, logger, port: 0, opsPort: 0 },
    config: readConfig({ PLEDGEVIEW_TRUST_PROXY: '127.0.0.1' }),
    portal: { port: 0, showMail: mail => void mails.push(mail) },
  })
  try {
    const browser = createBrowser(service.portalUrl ?? '')
    await browser.post('/sign-in', { email: 'ada@example.com' })
    const code = /^ {4}(\d{4} \d{4})$/m.exec(mails[0]?.text ?? '')?.[1] ?? ''
    expect((await browser.post('/sign-in/code', { code })).status).toBe(303)
    let answered = 0
    let isOver = false
    const pages = Array.from({ length: requestBound.max }, () => browser.get('/account'))
    const ended = Promise.all(pages.map(page => page.finally(() => answered++))).finally(() => {
      isOver = true
    })
    let meanwhileMax = 0
    while (!isOver) {
      const before = answered
      await service.model.tables.rows({ query: 'SELECT 1' })
      meanwhileMax = Math.max(meanwhileMax, answered - before)
    }
    expect(new Set((await ended).map(({ status }) => status))).toEqual(new Set([200]))
    expect(meanwhileMax).toBeLessThan(pages.length / 4)
  } finally {
    await service.close()
    files.remove()
  }
})
