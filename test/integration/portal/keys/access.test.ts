/** The pages under /access as a browser without JavaScript uses them, on the real app with its ports in memory. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { keyPrefix } from '../../../../services/api-keys/credentials.ts'
import { accessBounds } from '../../../../services/portal/keys/access.ts'
import {
  addIntegration,
  createKey,
  integrationFields,
  tokenOf,
} from '../../../support/portal/access-forms.ts'
import { type Person, startTestPortal, type TestPortal } from '../../../support/portal/app.ts'
import { submit } from '../../../support/portal/browser.ts'

let portal: TestPortal
let person: Person
let isUsageAway: boolean
beforeEach(async () => {
  isUsageAway = false
  const usageOf = async (asked: readonly { key: string }[]) => {
    if (isUsageAway) throw new Error('the tables are away')
    return new Map(asked.map(({ key }) => [key, { last_used: undefined, days: [] }]))
  }
  portal = await startTestPortal({ overrides: { usageOf } })
  person = await portal.signIn('a@example.com')
})
afterEach(() => portal.close())

/** A key of a new integration. */
async function makeKey() {
  const integration = await addIntegration(portal, person)
  await createKey(person, integration)
  return { integration, key: portal.keys.last(), path: `/access/keys/${keyPrefix(portal.keys.last().key)}` }
}

const integrations = () => portal.accounts.integrations('a@example.com')

it('without a session every page leads to the sign-in page, and from there back', async () => {
  const { status, location } = await portal.browser().get('/access/keys/pv_live_abcdefgh')
  expect(status).toBe(303)
  expect(location).toBe(`/sign-in?next=${encodeURIComponent('/access/keys/pv_live_abcdefgh')}`)
})

describe('an integration', () => {
  it('is added, edited and removed, and its keys are revoked before', async () => {
    const { integration, key } = await makeKey()
    expect((await person.browser.get('/access?done=added')).text).toContain('The integration was added.')
    const path = `/access/integrations/${integration}`
    const edited = await person.browser.post(path, { ...integrationFields, name: 'Renamed' })
    expect(edited.location).toBe('/access?done=saved')
    const question = await person.browser.get(`${path}/remove`)
    expect(question.text).toContain('Remove <bdi>Renamed</bdi>?')
    expect(question.text).toContain(keyPrefix(key.key))
    expect((await person.browser.post(`${path}/remove`)).location).toBe('/access?done=removed')
    expect(await integrations()).toEqual([])
    // Its keys were revoked, and nothing of them stays: no key keeps a contact address.
    expect(portal.notices.revokedKeys).toEqual([keyPrefix(key.key)])
    expect(portal.keys.all).toEqual([])
  })

  it('with faults is not saved: each fault stands at its field', async () => {
    const fields = { ...integrationFields, url: 'javascript:alert(1)' }
    const answer = await submit(person.browser, '/access/integrations/new', /integrations$/, fields)
    expect(answer.status).toBe(422)
    expect(answer.text).toContain('aria-describedby="url-fault url-hint"')
    expect(answer.text).toContain('value="Backer Board"')
    expect(await integrations()).toEqual([])
  })

  it('is added once if the form is sent twice', async () => {
    const { text } = await person.browser.get('/access/integrations/new')
    const form = { ...integrationFields, token: tokenOf(text, '/access/integrations') }
    const send = () => person.browser.post('/access/integrations', form)
    const answers = [...(await Promise.all([send(), send()])), await send()]
    expect(answers.map(({ location }) => location)).toEqual(Array(3).fill('/access?done=added'))
    expect(await integrations()).toHaveLength(1)
    expect((await person.browser.post('/access/integrations', { ...form, token: 'made-up' })).status).toBe(
      400,
    )
  })

  it('that one more would exceed the limit is refused with the reason', async () => {
    portal.accounts.refusal = 'An account has at most 20 integrations. Remove one first.'
    const { status, text } = await submit(
      person.browser,
      '/access/integrations/new',
      /integrations$/,
      integrationFields,
    )
    expect(status).toBe(409)
    expect(text).toContain(portal.accounts.refusal)
  })
})

describe('a new key', () => {
  it('is shown with its secret once, is not cached, and is told of by mail if it can be', async () => {
    portal.notices.fails = true
    const integration = await addIntegration(portal, person)
    expect((await createKey(person, integration)).status).toBe(200)
    await expect.poll(() => portal.log.join('')).toContain('a notice on a key could not be handed over')
    portal.notices.fails = false
    const { status, headers, text } = await createKey(person, integration)
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

  it('is one key, shown with one secret in both answers, if the button was clicked twice', async () => {
    const action = `/access/integrations/${await addIntegration(portal, person)}/keys`
    const token = tokenOf((await person.browser.get('/access')).text, action)
    // The key is made only when the second form has arrived, too.
    const looked = portal.accounts.reads
    portal.keys.beforeIssue = () => expect.poll(() => portal.accounts.reads).toBe(looked + 2)
    const answers = await Promise.all([1, 2].map(() => person.browser.post(action, { token })))
    expect(portal.keys.all).toHaveLength(1)
    for (const { text } of answers) expect(text).toContain(portal.keys.secrets.get(portal.keys.last().key))
    const late = await person.browser.post(action, { token })
    expect(late.status).toBe(409)
    expect(late.text).toContain('This form was sent before')
    expect(late.text).not.toContain('pv_secret')
    expect(portal.keys.all).toHaveLength(1)
  })

  it('is refused with the reason if three are active', async () => {
    const action = `/access/integrations/${await addIntegration(portal, person)}/keys`
    // Four tabs were open before the first was used.
    const pages = await Promise.all([1, 2, 3, 4].map(() => person.browser.get('/access')))
    const answers = []
    for (const { text } of pages)
      answers.push(await person.browser.post(action, { token: tokenOf(text, action) }))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 409])
    expect(answers[3]?.text).toContain('Three keys are active already.')
  })

  it('of an integration that was removed meanwhile is revoked again', async () => {
    const id = await addIntegration(portal, person)
    portal.keys.beforeIssue = () => portal.accounts.removeIntegration('a@example.com', id)
    const { status, text } = await createKey(person, id)
    expect(status).toBe(409)
    expect(text).not.toContain('pv_secret')
    expect(portal.keys.issuing).toBe(1)
    expect(portal.keys.all).toEqual([])
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

  it.each([
    ['at-once', 'has ended.', 'revoked'],
    ['one-hour', 'works for one more hour.', 'active'],
  ])('is replaced: the old one ends %s', async (overlap, consequence, status) => {
    const { key, path } = await makeKey()
    const action = `${path}/replace`
    const token = tokenOf((await person.browser.get(action)).text, action)
    const { text } = await person.browser.post(action, { overlap, token })
    expect(text).toContain(`<code id="secret">${portal.keys.secrets.get(portal.keys.last().key)}</code>`)
    expect(text).toContain(`The old key ${keyPrefix(key.key)}… ${consequence}`)
    expect(key.status).toBe(status)
    expect((await person.browser.post(action, { overlap, token })).status).toBe(409)
    expect(portal.keys.all).toHaveLength(2)
  })

  it('that was revoked for a replacement is told of by mail although no new key could be made', async () => {
    const { key, path } = await makeKey()
    portal.keys.refusal = 'No new one was created.'
    const answer = await submit(person.browser, `${path}/replace`, /replace$/, { overlap: 'at-once' })
    expect(answer.status).toBe(409)
    expect(key.status).toBe('revoked')
    expect(portal.notices.revokedKeys).toEqual([keyPrefix(key.key)])
  })

  it('of an operator is shown, and its replacement gets an integration', async () => {
    const { integration, key, path } = await makeKey()
    key.integration_id = ''
    expect((await person.browser.get('/access')).text).toContain('An operator issued these keys')
    const { text } = await person.browser.get(`${path}/replace`)
    expect(text).toContain(`<option value="${integration}">Backer Board</option>`)
    const send = (chosen: string) =>
      submit(person.browser, `${path}/replace`, /replace$/, { overlap: 'at-once', integration: chosen })
    expect((await send('none')).status).toBe(409)
    expect((await send(integration)).status).toBe(200)
    expect(portal.keys.last().integration_id).toBe(integration)
  })

  it('keeps its pages and its buttons while usage cannot be read', async () => {
    const { path } = await makeKey()
    isUsageAway = true
    const { status, text } = await person.browser.get('/access')
    expect(status).toBe(200)
    expect(text).toContain('The usage of keys cannot be read at the moment')
    expect((await person.browser.get(path)).text).toContain('not known now')
    expect((await person.browser.post(`${path}/revoke`)).location).toBe('/access?done=revoked')
  })
})

describe('an account', () => {
  it('saves integrations only so often: it could fill the log', async () => {
    const path = `/access/integrations/${await addIntegration(portal, person)}`
    for (let saves = 1; saves < accessBounds.saves.max; saves++)
      expect((await person.browser.post(path, integrationFields)).status).toBe(303)
    const { status, headers } = await person.browser.post(path, integrationFields)
    expect(status).toBe(429)
    expect(headers.get('retry-after')).toBe('3600')
  })

  it('has only so many keys made within a day, also if it removes the integration of each', async () => {
    const createAndRemove = async () => {
      const id = await addIntegration(portal, person)
      const { status } = await createKey(person, id)
      await person.browser.post(`/access/integrations/${id}/remove`)
      return status
    }
    const { max } = accessBounds.newKeys
    const answers: number[] = []
    for (let made = 0; made <= max; made++) answers.push(await createAndRemove())
    expect(answers).toEqual([...Array(max).fill(200), 429])
    expect(portal.keys.all).toEqual([])
    expect(portal.keys.issuing).toBe(max)
    portal.clock.advance(23 * 3_600_000)
    expect(await createAndRemove()).toBe(429)
    portal.clock.advance(3_600_000)
    expect(await createAndRemove()).toBe(200)
  })

  it('opens only so many pages within a minute; others open theirs', async () => {
    const other = await portal.signIn('b@example.com')
    const { max } = accessBounds.requests
    const answers: number[] = []
    for (let n = 0; n <= max; n++) answers.push((await person.browser.get('/access/integrations/new')).status)
    expect(answers).toEqual([...Array(max).fill(200), 429])
    expect((await other.browser.get('/access')).status).toBe(200)
  })
})

it('what belongs to another account is answered like what does not exist', async () => {
  const { integration, key, path } = await makeKey()
  const other = await portal.signIn('other@example.com')
  await other.browser.get('/access')
  const answersTo = async (keyPath: string, integrationPath: string) => {
    const answers = []
    for (const page of ['', '/revoke', '/replace']) answers.push(await other.browser.get(`${keyPath}${page}`))
    for (const page of ['/edit', '/remove'])
      answers.push(await other.browser.get(`${integrationPath}${page}`))
    for (const action of [
      ...['/revoke', '/replace'].map(end => `${keyPath}${end}`),
      ...['', '/remove', '/keys'].map(end => `${integrationPath}${end}`),
    ])
      answers.push(await other.browser.post(action, { ...integrationFields, overlap: 'at-once' }))
    return answers.map(({ status, text }) => ({ status, text }))
  }
  const foreign = await answersTo(path, `/access/integrations/${integration}`)
  expect(foreign).toEqual(await answersTo('/access/keys/pv_live_nothing0', '/access/integrations/nothing'))
  expect(new Set(foreign.map(({ status }) => status))).toEqual(new Set([404]))
  expect(portal.keys.all).toEqual([key])
  expect(key.status).toBe('active')
  expect(await integrations()).toHaveLength(1)
})

it('every form is refused without the token of its session', async () => {
  const { integration, key, path } = await makeKey()
  const statuses = []
  for (const action of [
    '/access/integrations',
    ...['', '/remove', '/keys'].map(end => `/access/integrations/${integration}${end}`),
    ...['/revoke', '/replace'].map(end => `${path}${end}`),
  ])
    statuses.push((await person.browser.post(action, { ...integrationFields, _csrf: 'made-up' })).status)
  expect(statuses).toEqual(Array(6).fill(403))
  expect(key.status).toBe('active')
})
