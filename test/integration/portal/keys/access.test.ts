/** The pages under /access as a browser without JavaScript uses them, on the real app with its ports in memory. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { KeyError } from '../../../../services/api-keys/api-keys.ts'
import { keyPrefix } from '../../../../services/api-keys/credentials.ts'
import { accessBounds } from '../../../../services/portal/keys/routes.ts'
import { requestBound } from '../../../../services/portal/sign-in/sessions.ts'
import type { RequestsOf } from '../../../../services/portal/usage/usage-reader.ts'
import { TablesError } from '../../../../services/tables/port.ts'
import { createKey, tokenOf } from '../../../support/portal/access-forms.ts'
import { type Person, startTestPortal, type TestPortal } from '../../../support/portal/app.ts'
import { submit } from '../../../support/portal/browser.ts'
import { sampleFields } from '../../../support/portal/memory-ports.ts'

let portal: TestPortal
let person: Person
let isUsageAway: boolean
beforeEach(async () => {
  isUsageAway = false
  const usageOf = async (asked: readonly { key: string }[]) => {
    if (isUsageAway) throw new Error('the tables are away')
    return new Map(asked.map(({ key }) => [key, { last_used: undefined, days: [] }]))
  }
  const requestsOf: RequestsOf = async (asked, id) => {
    const row = { answered_at: portal.clock.now(), path: '/api/v1/projects/:slug', status: 404, ms: 7 }
    const latest = asked.map(({ key }, n) => ({ ...row, api_key: key, request_id: `${id}-request-${n}` }))
    return { latest, endpoints: [] }
  }
  portal = await startTestPortal({ overrides: { usageOf, requestsOf } })
  person = await portal.signIn('a@example.com')
})
afterEach(() => portal.close())

async function makeKey() {
  await createKey(person)
  return { key: portal.keys.last(), path: `/access/keys/${keyPrefix(portal.keys.last().key)}` }
}

it('without a session every page leads to the sign-in page, and from there back', async () => {
  const { status, location } = await portal.browser().get('/access/keys/pv_live_abcdefgh')
  expect(status).toBe(303)
  expect(location).toBe(`/sign-in?next=${encodeURIComponent('/access/keys/pv_live_abcdefgh')}`)
})

describe('a new key', () => {
  const create = () => createKey(person)

  it('is shown with its secret once, is not cached, and is told of by mail if it can be', async () => {
    portal.notices.fails = true
    expect((await create()).status).toBe(200)
    await expect.poll(() => portal.log.join('')).toContain('a notice on a key could not be handed over')
    portal.notices.fails = false
    const { status, headers, text } = await create()
    const { key } = portal.keys.last()
    const secret = portal.keys.secrets.get(key) ?? 'none'
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(text).toContain(`<code id="key">${key}</code>`)
    expect(text).toContain(`<code id="secret">${secret}</code>`)
    expect((await person.browser.get('/access')).text).not.toContain(secret)
    expect(portal.log.join('')).not.toContain(secret)
    expect(portal.notices.createdKeys).toEqual([keyPrefix(key)])
  })

  it('is shown although the portal is told to end while it is made, and then nothing holds the portal up', async () => {
    const begun = Promise.withResolvers<void>()
    portal.keys.beforeIssue = async () => {
      begun.resolve()
      await sleep(2_000)
    }
    const answer = create()
    await begun.promise
    // A browser keeps one in reserve.
    const silent = connect(Number(new URL(portal.url).port), '127.0.0.1')
    await once(silent, 'connect')
    const from = performance.now()
    await portal.end()
    silent.destroy()
    expect(performance.now() - from).toBeLessThan(8_000)
    const { status, text } = await answer
    expect([status, text]).toEqual([
      200,
      expect.stringContaining(portal.keys.secrets.get(portal.keys.last().key) ?? ''),
    ])
  })

  it('comes with a line that calls the API, also if its address is configured with a slash at the end', async () => {
    await portal.close()
    portal = await startTestPortal({ options: { apiUrl: 'https://data.example/api/v1/' } })
    person = await portal.signIn('a@example.com')
    expect((await create()).text).toContain('https://data.example/api/v1/projects?limit')
  })

  it('ends after the time that was chosen, and only after one that is offered', async () => {
    const made = (expires: string) =>
      submit(person.browser, '/access/keys/new', /keys$/, { ...sampleFields, expires })
    expect((await made('9-days')).status).toBe(409)
    expect(portal.keys.issuing).toBe(0)
    expect((await made('90-days')).status).toBe(200)
    const deletion = async () => (await person.browser.get('/account/delete')).text
    expect(await deletion()).toContain('<strong>one key</strong>')
    // A new key like this one ends after the same time.
    const like = `/access/keys/new?like=${keyPrefix(portal.keys.last().key)}`
    expect((await person.browser.get(like)).text).toContain('<option value="90-days" selected>')
    const { text } = await person.browser.get('/access')
    expect(text).toMatch(/Active<\/span> until <time[^>]*>\d+ \w+ \d+, \d\d:\d\d UTC</)
    portal.clock.advance(90 * 86_400_000)
    expect((await person.browser.get('/access')).status).toBe(303)
    person = await portal.signIn('a@example.com')
    expect((await person.browser.get('/access')).text).toContain('Ended</span> on <time')
    expect(await deletion()).not.toContain('one key')
  })

  it('is deleted and not shown if its account is deleted while it is made', async () => {
    const { account_id } = await portal.accounts.ofVerifiedEmail('a@example.com')
    portal.keys.beforeIssue = async () => portal.accounts.delete(account_id)
    const { status, text } = await create()
    expect(status).toBe(403)
    expect(text).not.toContain('pv_secret')
    expect(portal.keys.all).toEqual([])
  })

  it('that could be neither made nor deleted again is told to the person, and the operator learns why', async () => {
    const cause = new Error('10.0.0.1 is away')
    portal.keys.beforeIssue = () => Promise.reject(new KeyError('revoke it', { cause }))
    const { status, text } = await create()
    expect([status, text]).toEqual([503, expect.stringContaining('Revoke it.')])
    expect(text).not.toContain(cause.message)
    expect(portal.log.join('')).toContain(cause.message)
  })

  it('is one key if its form is sent again, and is refused with the reason if three are active', async () => {
    // Four tabs were open before the first was used.
    const forms = await Promise.all([1, 2, 3, 4].map(() => person.browser.get('/access/keys/new')))
    const send = (text = '') =>
      person.browser.post('/access/keys', { ...sampleFields, token: tokenOf(text, '/access/keys') })
    expect((await send(forms[0]?.text)).status).toBe(200)
    const late = await send(forms[0]?.text)
    expect(late.status).toBe(409)
    expect(late.text).toContain('This form was sent before')
    expect(late.text).not.toContain('pv_secret')
    const answers = []
    for (const { text } of forms.slice(1)) answers.push(await send(text))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 409])
    expect(answers[2]?.text).toContain('Three keys are active already.')
    expect((await send('made-up')).status).toBe(400)
  })
})

describe('a key', () => {
  it('is revoked after a question that says when it was last used, and twice is no error', async () => {
    const { key, path } = await makeKey()
    const { text } = await person.browser.get(`${path}/revoke`)
    expect(text).toContain('<dt>Last used</dt><dd>no counted use in the last 90 days</dd>')
    expect(key.status).toBe('active')
    for (const _ of [1, 2])
      expect((await person.browser.post(`${path}/revoke`)).location).toBe('/access?done=revoked')
    expect(key.status).toBe('revoked')
    expect(portal.notices.revokedKeys).toEqual([keyPrefix(key.key)])
  })

  it('is told of by mail if its revocation is in the log and lands late, but not if it is not in the log', async () => {
    const { key, path } = await makeKey()
    const away = new TablesError('away', { retryable: true })
    portal.keys.revoke = () => Promise.reject(away)
    expect((await person.browser.post(`${path}/revoke`)).status).toBe(503)
    expect(portal.notices.revokedKeys).toEqual([])
    portal.keys.revoke = async (_, onAppended) => {
      onAppended?.()
      throw away
    }
    expect((await person.browser.post(`${path}/revoke`)).status).toBe(503)
    expect(portal.notices.revokedKeys).toEqual([keyPrefix(key.key)])
  })

  it('is edited, with the same checks as a new one', async () => {
    const { key, path } = await makeKey()
    const edited = (name: string) =>
      submit(person.browser, `${path}/edit`, /edit$/, { ...sampleFields, name })
    expect((await edited('')).status).toBe(422)
    expect((await edited('Renamed')).location).toBe('/access?done=saved')
    expect(key.name).toBe('Renamed')
    expect((await person.browser.get('/access?done=saved')).text).toContain('<bdi>Renamed</bdi>')
    await person.browser.post(`${path}/revoke`)
    expect((await person.browser.get(`${path}/edit`)).location).toBe(path)
  })

  it('keeps its pages and its buttons while usage cannot be read', async () => {
    const { path } = await makeKey()
    isUsageAway = true
    const { status, text } = await person.browser.get('/access')
    expect(status).toBe(200)
    expect(text).toContain('The usage of keys cannot be read at the moment')
    expect(text).not.toContain('no counted use')
    expect((await person.browser.get(path)).text).toContain('not known now')
    expect((await person.browser.post(`${path}/revoke`)).location).toBe('/access?done=revoked')
  })
})

describe('an account', () => {
  it('changes keys only so often: it could fill the log', async () => {
    const { path } = await makeKey()
    const save = () => person.browser.post(`${path}/edit`, { ...sampleFields })
    for (let saves = 0; saves < accessBounds.saves.max; saves++) expect((await save()).status).toBe(303)
    const { status, headers } = await save()
    expect(status).toBe(429)
    expect(headers.get('retry-after')).toBe('3600')
  })

  it('has only so many keys made within a day, also if it revokes each', async () => {
    const createAndRevoke = async () => {
      const { status } = await createKey(person)
      if (status === 200) portal.keys.last().status = 'revoked'
      portal.clock.advance(60_000)
      return status
    }
    const { max } = accessBounds.newKeys
    const answers: number[] = []
    for (let made = 0; made <= max; made++) answers.push(await createAndRevoke())
    expect(answers).toEqual([...Array(max).fill(200), 429])
    expect(portal.keys.issuing).toBe(max)
    portal.clock.advance(23 * 3_600_000)
    expect(await createAndRevoke()).toBe(429)
    portal.clock.advance(3_600_000)
    expect(await createAndRevoke()).toBe(200)
  })

  it.each(['/access/keys/new', '/account', '/'])(
    'opens only so many pages like %s within a minute, and no more read the tables; others open theirs',
    async path => {
      const other = await portal.signIn('b@example.com')
      const reads = vi.spyOn(portal.accounts, 'find')
      const { max, reason } = requestBound
      const answers: number[] = []
      for (let n = 0; n < max; n++) answers.push((await person.browser.get(path)).status)
      expect(answers).toEqual(Array(max).fill(200))
      expect(await person.browser.get(path)).toMatchObject({
        status: 429,
        text: expect.stringContaining(reason),
      })
      expect(reads).toHaveBeenCalledTimes(max)
      expect((await other.browser.get('/access')).status).toBe(200)
      // Whoever has stolen the session does not keep the person from ending it, in the same browser or in another one.
      expect((await person.browser.get('/sign-in')).status).toBe(200)
      expect((await person.browser.post('/sign-out')).status).toBe(303)
      const { browser } = await portal.signIn('a@example.com')
      expect((await browser.post('/sign-out-everywhere')).status).toBe(303)
    },
  )
})

it('what belongs to another account is answered like what does not exist', async () => {
  const { key, path } = await makeKey()
  const other = await portal.signIn('other@example.com')
  const answersTo = async (keyPath: string) => {
    const answers = [await other.browser.get(keyPath.replace('keys/', 'keys/new?like='))]
    for (const page of ['', '/edit', '/revoke']) answers.push(await other.browser.get(`${keyPath}${page}`))
    for (const action of ['/edit', '/revoke'])
      answers.push(await other.browser.post(`${keyPath}${action}`, { ...sampleFields }))
    return answers.map(({ status, text }) => ({ status, text }))
  }
  const foreign = await answersTo(path)
  expect(foreign).toEqual(await answersTo('/access/keys/pv_live_nothing0'))
  expect(new Set(foreign.map(({ status }) => status))).toEqual(new Set([404]))
  expect(portal.keys.all).toEqual([key])
  expect(key.status).toBe('active')
})

it('an account sees the requests of its own keys, and finds one by its id', async () => {
  await makeKey()
  const other = await portal.signIn('other@example.com')
  await createKey(other)
  const name = keyPrefix(portal.keys.last().key)
  const read = (query: string) => person.browser.get(`/access/requests?${query}`)
  const { status, text, headers } = await read('per=hour&id=%22%3Eabc')
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect(text.match(/&quot;&gt;abc-request-\d/g) ?? text.match(/abc-request-\d/g)).toHaveLength(1)
  expect(text).toContain('/api/v1/projects/{slug}')
  expect(text).not.toContain(name)
  expect((await read(`key=${name}`)).status).toBe(404)
  expect((await other.browser.get(`/access/requests?key=${name}`)).status).toBe(200)
})
