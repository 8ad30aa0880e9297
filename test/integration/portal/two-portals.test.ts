/** Two portals on one Redis: what one has begun, the other ends, and limits hold across both. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { PortalStore } from '../../../services/portal/store/port.ts'
import { createRedisStore } from '../../../services/portal/store/redis-store.ts'
import { freePort } from '../../../services/runtime/free-port.ts'
import { startTestPortal, type TestPortal } from '../../support/portal/app.ts'
import { type Browser, createBrowser } from '../../support/portal/browser.ts'
import { memoryAccounts } from '../../support/portal/memory-ports.ts'
import {
  connectTo,
  isUpWithin,
  newPrefix,
  type RedisProcess,
  redisProgram,
  startRedis,
} from '../../support/redis.ts'
import { needs } from '../../support/requirements.ts'

let redis: RedisProcess | undefined
let portals: TestPortal[] = []
const stores: PortalStore[] = []

beforeAll(async () => {
  if (!redisProgram.isMet) return
  redis = await startRedis()
  const keyPrefix = newPrefix()
  const accounts = memoryAccounts(Date.now)
  const portalUrl = `http://127.0.0.1:${await freePort()}`
  for (let count = 0; count < 2; count++) {
    const connection = connectTo(redis)
    expect(await isUpWithin(connection, 10_000)).toBe(true)
    const store = createRedisStore({ connection, keyPrefix })
    stores.push(store)
    portals.push(
      await startTestPortal({ options: { portalUrl }, overrides: { accounts, store, now: Date.now } }),
    )
  }
})

afterAll(async () => {
  for (const portal of portals) await portal.close()
  for (const store of stores) await store.close()
  await redis?.close()
  portals = []
})

beforeEach(context => needs(context, redisProgram))

/** A browser of the first portal, and the same browser when the load balancer leads it to the second. */
function browserOfBoth(): [Browser, Browser] {
  const cookies = new Map<string, string>()
  const [first, second] = portals.map(({ url }) => createBrowser(url, cookies))
  if (!first || !second) throw new Error('two portals are needed')
  return [first, second]
}

function codeIn(portal: TestPortal | undefined): string {
  return /^ {4}(\d{4} \d{4})$/m.exec(portal?.mailer.mails.at(-1)?.text ?? '')?.[1] ?? ''
}

async function signIn([first]: [Browser, Browser], email: string): Promise<void> {
  await first.get('/sign-in')
  await first.post('/sign-in', { email })
  const code = codeIn(portals[0])
  await first.get('/sign-in/code')
  expect((await first.post('/sign-in/code', { code })).status).toBe(303)
}

test('a sign-in that one portal began ends at the other, and counts at both', async () => {
  const [first, second] = browserOfBoth()
  await first.get('/sign-in')
  await first.post('/sign-in', { email: 'ada@example.com' })
  // The form comes from the first portal, and goes to the second: their tokens are the same.
  const page = await first.get('/sign-in/code')
  const _csrf = /name="_csrf" value="([^"]*)"/.exec(page.text)?.[1] ?? ''
  const answer = await second.post('/sign-in/code', { _csrf, code: codeIn(portals[0]) })
  expect(answer.status).toBe(303)
  expect([(await first.get('/account')).status, (await second.get('/account')).status]).toEqual([200, 200])
})

test('signing out at one portal signs out at the other, also everywhere', async () => {
  const here = browserOfBoth()
  const there = browserOfBoth()
  await signIn(here, 'bob@example.com')
  await signIn(there, 'bob@example.com')
  await here[1].get('/account')
  expect((await here[1].post('/sign-out-everywhere')).status).toBe(303)
  expect((await there[0].get('/account')).status).toBe(303)
  expect((await there[1].get('/account')).status).toBe(303)
})

test('without Redis the public pages are served, and a page of a person says that it cannot be shown now', async () => {
  const [first] = browserOfBoth()
  await signIn([first, first], 'carol@example.com')
  await redis?.kill()
  expect((await first.get('/')).status).toBe(200)
  expect((await first.get('/account')).status).toBe(503)
  await redis?.restart()
})
