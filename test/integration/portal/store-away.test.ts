/** The store does not answer: pages say so soon, and people can still sign out. */
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { encodeState } from '../../../contracts/events/codec.ts'
import { startPortalService } from '../../../services/portal/service.ts'
import type { PortalStore } from '../../../services/portal/store/port.ts'
import { openSqliteStore } from '../../../services/portal/store/sqlite-store.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import { portalKey, startTestPortal, type TestPortal } from '../../support/portal/app.ts'
import type { Browser } from '../../support/portal/browser.ts'

let portal: TestPortal
let browser: Browser
let state: 'answers' | 'takes nothing' | 'fails' | 'hangs'
const inner = openSqliteStore({ path: ':memory:', now: Date.now })
const asIs = <R>(call: () => Promise<R>): Promise<R> => {
  if (state === 'answers') return call()
  return state === 'hangs' ? new Promise(() => undefined) : Promise.reject(new Error('the store is away'))
}
const store: PortalStore = {
  ...inner,
  get: key => (state === 'takes nothing' ? inner.get(key) : asIs(() => inner.get(key))),
  take: key => asIs(() => inner.take(key)),
}

beforeEach(async () => {
  state = 'answers'
  portal = await startTestPortal({ overrides: { store, now: Date.now } })
  ;({ browser } = await portal.signIn('ada@example.com'))
  state = 'fails'
})
afterEach(() => portal.close())
afterAll(() => inner.close())

test.each(['fails', 'takes nothing'] as const)(
  'signing out drops the cookie, and says that the session itself did not end, if the store %s',
  async how => {
    state = how
    const answer = await browser.post('/sign-out')
    expect(answer.status).toBe(503)
    expect(answer.text).toContain('This browser is signed out')
    expect(answer.text).not.toContain('>Sign out<')
    expect(browser.cookies.has('pledgeview')).toBe(false)
  },
)

test('a page of a person answers 503 within seconds, and the browser keeps its session', async () => {
  state = 'hangs'
  const status = browser.get('/account').then(answer => answer.status)
  // The portal waits 2 s for the store.
  expect(await Promise.race([status, delay(10_000, 'no answer within 10 s', { ref: false })])).toBe(503)
  state = 'fails'
  expect((await browser.post('/sign-out-everywhere')).status).toBe(503)
  expect((await browser.get('/sign-in')).status).toBe(200)
  state = 'answers'
  expect((await browser.get('/account')).status).toBe(200)
})

test('a portal that ends does not wait long for what runs beside the requests, if that hangs', async () => {
  const hangs = () => new Promise<never>(() => undefined)
  const service = await startPortalService({
    ...{ portalUrl: 'http://127.0.0.1:8081', apiUrl: 'http://127.0.0.1:8080/api/v1', hosts: [], portalKey },
    config: readConfig({}),
    ...{ databases: defaultDatabases, logger: pino({ level: 'silent' }), mailer: undefined },
    store: { ...inner, claim: hangs, close: async () => undefined },
    tables: { rows: hangs, run: hangs, insert: hangs, close: hangs },
    keyAdmin: {
      directory: { ofAccount: hangs, find: hangs },
      ...{ writer: { append: hangs, close: hangs }, encode: encodeState, pepper: '' },
    },
  })
  expect(await Promise.race([service.close(), delay(14_000, 'still open', { ref: false })])).toBeUndefined()
})
