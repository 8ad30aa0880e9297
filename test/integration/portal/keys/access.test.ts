/** The pages under /access as a browser without JavaScript uses them, on the real app with its ports in memory. */
import { afterEach, describe, expect, it } from 'vitest'
import { keyPrefix } from '../../../../services/api-keys/credentials.ts'
import { type AccessPortal, startAccessPortal } from '../../../support/portal/access.ts'
import {
  addIntegration,
  createKey,
  integrationFields,
  lastKey,
  tokenOf,
} from '../../../support/portal/access-forms.ts'

let portal: AccessPortal

afterEach(() => portal.close())

describe('without a session', () => {
  it('every page leads to the sign-in page, and from there back', async () => {
    portal = await startAccessPortal()
    const { status, location } = await portal.browser().get('/access/keys/pv_live_abcdefgh')
    expect(status).toBe(303)
    expect(location).toBe(`/sign-in?next=${encodeURIComponent('/access/keys/pv_live_abcdefgh')}`)
  })
})

describe('an integration', () => {
  it('is added, edited and removed, and its keys are revoked before', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    const id = await addIntegration(portal, person)
    const { text } = await person.browser.get('/access?done=added')
    expect(text).toContain('<bdi>Backer Board</bdi>')
    expect(text).toContain('The integration was added.')

    await createKey(person, id)
    const edited = await person.browser.post(`/access/integrations/${id}`, {
      ...integrationFields,
      name: 'Renamed',
    })
    expect(edited.location).toBe('/access?done=saved')
    const question = await person.browser.get(`/access/integrations/${id}/remove`)
    expect(question.text).toContain('Remove <bdi>Renamed</bdi>?')
    const { key } = lastKey(portal)
    expect(question.text).toContain(keyPrefix(key))
    const removed = await person.browser.post(`/access/integrations/${id}/remove`)
    expect(removed.location).toBe('/access?done=removed')
    expect(await portal.accounts.integrations(person.account.account_id)).toEqual([])
    // Its keys were revoked, and nothing of them stays: no key keeps a contact address.
    expect(portal.calls.revoked).toEqual([keyPrefix(key)])
    expect(portal.keys.all).toEqual([])
  })

  it('with faults is not saved: each fault stands at its field', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    await person.browser.get('/access/integrations/new')
    const answer = await person.browser.post('/access/integrations', {
      ...integrationFields,
      url: 'javascript:alert(1)',
    })
    expect(answer.status).toBe(422)
    expect(answer.text).toContain('aria-describedby="url-fault url-hint"')
    expect(answer.text).toContain('value="Backer Board"')
    expect(await portal.accounts.integrations(person.account.account_id)).toEqual([])
  })

  it('is added once if the form is sent twice', async () => {
    portal = await startAccessPortal()
    const { browser, account } = await portal.signIn('a@example.com')
    const { text } = await browser.get('/access/integrations/new')
    const form = { ...integrationFields, token: tokenOf(text, '/access/integrations') }
    const answers = await Promise.all([1, 2].map(() => browser.post('/access/integrations', form)))
    answers.push(await browser.post('/access/integrations', form))
    expect(answers.map(({ location }) => location)).toEqual(Array(3).fill('/access?done=added'))
    expect(await portal.accounts.integrations(account.account_id)).toHaveLength(1)
  })

  it('that one more would exceed the limit is refused with the reason', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    portal.calls.integrationRefusal = 'An account has at most 20 integrations. Remove one first.'
    const { text } = await person.browser.get('/access/integrations/new')
    const token = tokenOf(text, '/access/integrations')
    const answer = await person.browser.post('/access/integrations', { ...integrationFields, token })
    expect(answer.status).toBe(409)
    expect(answer.text).toContain('An account has at most 20 integrations. Remove one first.')
    // The form can be sent again: it has a new token.
    expect(tokenOf(answer.text, '/access/integrations')).not.toBe(token)
  })
})

describe('a new key', () => {
  it('is shown with its secret once, and is not cached', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    const { status, headers, text } = await createKey(person, await addIntegration(portal, person))
    const { key } = lastKey(portal)
    const secret = portal.calls.secrets.get(key) ?? 'none'
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(text).toContain(`<code id="key">${key}</code>`)
    expect(text).toContain(`<code id="secret">${secret}</code>`)
    expect((await person.browser.get('/access')).text).not.toContain(secret)
    expect(portal.log.join('')).not.toContain(secret)
    expect(portal.calls.created).toEqual([keyPrefix(key)])
  })

  it('is one key, shown with one secret in both answers, if the button was clicked twice', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    const action = `/access/integrations/${await addIntegration(portal, person)}/keys`
    const token = tokenOf((await person.browser.get('/access')).text, action)
    // The key is made only when the second form has arrived, too.
    const looked = portal.calls.integrationsRead
    portal.calls.beforeIssue = () => expect.poll(() => portal.calls.integrationsRead).toBe(looked + 2)
    const answers = await Promise.all([1, 2].map(() => person.browser.post(action, { token })))
    expect(portal.keys.all).toHaveLength(1)
    for (const { text } of answers) expect(text).toContain(portal.calls.secrets.get(lastKey(portal).key))
    const late = await person.browser.post(action, { token })
    expect(late.status).toBe(409)
    expect(late.text).toContain('This form was sent before')
    expect(late.text).not.toContain('pv_secret')
    expect(portal.keys.all).toHaveLength(1)
  })

  it('is refused with the reason if three are active', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    const action = `/access/integrations/${await addIntegration(portal, person)}/keys`
    // Four tabs were open before the first was used.
    const pages = await Promise.all([1, 2, 3, 4].map(() => person.browser.get('/access')))
    const answers = []
    for (const { text } of pages)
      answers.push(await person.browser.post(action, { token: tokenOf(text, action) }))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 409])
    expect(answers[3]?.text).toContain('three keys are active already')
  })

  it('of an integration that was removed meanwhile is revoked again', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    const id = await addIntegration(portal, person)
    portal.calls.beforeIssue = () => portal.accounts.removeIntegration(person.account.account_id, id)
    const { status, text } = await createKey(person, id)
    expect(status).toBe(409)
    expect(text).not.toContain('pv_secret')
    expect(portal.calls.issuing).toBe(1)
    expect(portal.keys.all).toEqual([])
  })

  it('is shown although a notice could not be handed over', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    portal.calls.noticesFail = true
    expect((await createKey(person, await addIntegration(portal, person))).status).toBe(200)
    await expect.poll(() => portal.log.join('')).toContain('a notice on a key could not be handed over')
  })
})

describe('a key', () => {
  it('is revoked after a question that says when it was last used, and twice is no error', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    await createKey(person, await addIntegration(portal, person))
    const { key } = lastKey(portal)
    const path = `/access/keys/${keyPrefix(key)}/revoke`
    const { text } = await person.browser.get(path)
    expect(text).toContain('<dt>Last used</dt><dd>no counted use in the last 90 days</dd>')
    expect(lastKey(portal).status).toBe('active')
    for (const _ of [1, 2]) expect((await person.browser.post(path)).location).toBe('/access?done=revoked')
    expect(lastKey(portal).status).toBe('revoked')
    expect(portal.calls.revoked).toEqual([keyPrefix(key)])
  })

  it.each([
    ['at-once', 'has ended.', 'revoked'],
    ['one-hour', 'works for one more hour.', 'active'],
    ['one-day', 'works for 24 more hours.', 'active'],
  ])('is replaced: the old one ends %s', async (overlap, consequence, status) => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    await createKey(person, await addIntegration(portal, person))
    const old = lastKey(portal)
    const path = `/access/keys/${keyPrefix(old.key)}/replace`
    const token = tokenOf((await person.browser.get(path)).text, path)
    const { text } = await person.browser.post(path, { overlap, token })
    expect(text).toContain(`<code id="secret">${portal.calls.secrets.get(lastKey(portal).key)}</code>`)
    expect(text).toContain(`The old key ${keyPrefix(old.key)}… ${consequence}`)
    expect(old.status).toBe(status)
    expect((await person.browser.post(path, { overlap, token })).status).toBe(409)
    expect(portal.keys.all).toHaveLength(2)
  })

  it('that was revoked for a replacement is told of by mail although no new key could be made', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    await createKey(person, await addIntegration(portal, person))
    const old = lastKey(portal)
    portal.calls.replaceRefusal = 'No new one was created.'
    const path = `/access/keys/${keyPrefix(old.key)}/replace`
    const token = tokenOf((await person.browser.get(path)).text, path)
    expect((await person.browser.post(path, { overlap: 'at-once', token })).status).toBe(409)
    expect(old.status).toBe('revoked')
    expect(portal.calls.revoked).toEqual([keyPrefix(old.key)])
  })

  it('of an operator is shown, and its replacement gets an integration', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    const id = await addIntegration(portal, person)
    await createKey(person, id)
    const old = lastKey(portal)
    old.integration_id = ''
    expect((await person.browser.get('/access')).text).toContain('An operator issued these keys')
    const path = `/access/keys/${keyPrefix(old.key)}/replace`
    const { text } = await person.browser.get(path)
    expect(text).toContain(`<option value="${id}">Backer Board</option>`)
    const form = { overlap: 'at-once', token: tokenOf(text, path), integration: id }
    expect((await person.browser.post(path, { ...form, integration: 'none' })).status).toBe(409)
    expect((await person.browser.post(path, form)).status).toBe(200)
    expect(lastKey(portal).integration_id).toBe(id)
  })
})

describe('usage', () => {
  it('that cannot be read leaves the pages and the buttons', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    await createKey(person, await addIntegration(portal, person))
    portal.calls.usageFails = true
    const { status, text } = await person.browser.get('/access')
    expect(status).toBe(200)
    expect(text).toContain('The usage of keys cannot be read at the moment')
    const path = `/access/keys/${keyPrefix(lastKey(portal).key)}`
    expect((await person.browser.get(path)).text).toContain('not known now')
    expect((await person.browser.post(`${path}/revoke`)).location).toBe('/access?done=revoked')
  })
})
