/** What an account cannot do under /access: too much within a time, or anything to what belongs to another account. */
import { afterEach, describe, expect, it } from 'vitest'
import { keyPrefix } from '../../../../services/api-keys/credentials.ts'
import {
  madeKeysPerDayMax,
  newKeysPerHourMax,
  requestsPerMinuteMax,
  savesPerHourMax,
} from '../../../../services/portal/keys/access-pages.ts'
import { openSqliteStore } from '../../../../services/portal/store/sqlite-store.ts'
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

describe('an account', () => {
  it('saves integrations only so often: it could fill the log', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    const path = `/access/integrations/${await addIntegration(portal, person)}`
    for (let saves = 1; saves < savesPerHourMax; saves++) {
      expect((await person.browser.post(path, integrationFields)).status).toBe(303)
    }
    const { status, headers } = await person.browser.post(path, integrationFields)
    expect(status).toBe(429)
    expect(headers.get('retry-after')).toBe('3600')
  })

  it('asks for new keys only so often, and nothing is stored for what is refused', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    const id = await addIntegration(portal, person)
    const answers: number[] = []
    for (let n = 0; n <= newKeysPerHourMax; n++)
      answers.push(
        (await person.browser.post(`/access/integrations/${id}/keys`, { token: 'made-up' })).status,
      )
    expect(answers).toEqual([...Array(newKeysPerHourMax).fill(409), 429])
    expect(portal.calls.issuing).toBe(0)
  })

  it('has only so many keys made within a day, also if it removes the integration of each', async () => {
    let now = Date.now()
    const store = openSqliteStore({ path: ':memory:', now: () => now })
    portal = await startAccessPortal({ store, now: () => now })
    const person = await portal.signIn('a@example.com')
    const createAndRemove = async () => {
      const id = await addIntegration(portal, person)
      const { status } = await createKey(person, id)
      await person.browser.post(`/access/integrations/${id}/remove`)
      return status
    }
    const answers: number[] = []
    for (let made = 0; made <= madeKeysPerDayMax; made++) answers.push(await createAndRemove())
    expect(answers).toEqual([...Array(madeKeysPerDayMax).fill(200), 429])
    expect(portal.keys.all).toEqual([])
    expect(portal.calls.issuing).toBe(madeKeysPerDayMax)
    now += 23 * 3_600_000
    expect(await createAndRemove()).toBe(429)
    now += 3_600_000
    expect(await createAndRemove()).toBe(200)
    await store.close()
  })

  it('opens only so many pages within a minute; others open theirs', async () => {
    portal = await startAccessPortal()
    const [person, other] = [await portal.signIn('a@example.com'), await portal.signIn('b@example.com')]
    const answers: number[] = []
    for (let n = 0; n <= requestsPerMinuteMax; n++)
      answers.push((await person.browser.get('/access/integrations/new')).status)
    expect(answers).toEqual([...Array(requestsPerMinuteMax).fill(200), 429])
    expect((await other.browser.get('/access')).status).toBe(200)
  })

  it('makes one key at a time: a second form hears so', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    const action = `/access/integrations/${await addIntegration(portal, person)}/keys`
    const pages = await Promise.all([1, 2].map(() => person.browser.get('/access')))
    const issue = Promise.withResolvers<void>()
    portal.calls.beforeIssue = () => issue.promise
    const [first, second] = pages.map(({ text }) => tokenOf(text, action))
    const making = person.browser.post(action, { token: first ?? '' })
    await expect.poll(() => portal.calls.issuing).toBe(1)
    const refused = await person.browser.post(action, { token: second ?? '' })
    expect(refused.status).toBe(409)
    expect(refused.text).toContain('Another key of your account is being made')
    issue.resolve()
    expect((await making).status).toBe(200)
    expect(portal.keys.all).toHaveLength(1)
  })
})

describe('what belongs to another account', () => {
  it('is answered like what does not exist', async () => {
    portal = await startAccessPortal()
    const owner = await portal.signIn('owner@example.com')
    const id = await addIntegration(portal, owner)
    await createKey(owner, id)
    const { key } = lastKey(portal)
    const other = await portal.signIn('other@example.com')
    await other.browser.get('/access')
    const paths = (keyName: string, integrationId: string) => ({
      get: [
        `/access/keys/${keyName}`,
        `/access/keys/${keyName}/revoke`,
        `/access/keys/${keyName}/replace`,
        `/access/integrations/${integrationId}/edit`,
        `/access/integrations/${integrationId}/remove`,
      ],
      post: [
        `/access/keys/${keyName}/revoke`,
        `/access/keys/${keyName}/replace`,
        `/access/integrations/${integrationId}`,
        `/access/integrations/${integrationId}/remove`,
        `/access/integrations/${integrationId}/keys`,
      ],
    })
    const answersTo = async ({ get, post }: ReturnType<typeof paths>) => {
      const answers = []
      for (const path of get) answers.push(await other.browser.get(path))
      for (const path of post)
        answers.push(await other.browser.post(path, { ...integrationFields, overlap: 'at-once' }))
      return answers.map(({ status, text }) => ({ status, text }))
    }
    const foreign = await answersTo(paths(keyPrefix(key), id))
    expect(foreign).toEqual(await answersTo(paths('pv_live_nothing0', 'nothing')))
    expect(new Set(foreign.map(({ status }) => status))).toEqual(new Set([404]))
    expect(portal.keys.all).toHaveLength(1)
    expect(lastKey(portal).status).toBe('active')
    expect(await portal.accounts.integrations(owner.account.account_id)).toHaveLength(1)
  })
})

describe('every form', () => {
  it('is refused without the token of its session', async () => {
    portal = await startAccessPortal()
    const person = await portal.signIn('a@example.com')
    const id = await addIntegration(portal, person)
    await createKey(person, id)
    const prefix = keyPrefix(lastKey(portal).key)
    for (const path of [
      '/access/integrations',
      `/access/integrations/${id}`,
      `/access/integrations/${id}/remove`,
      `/access/integrations/${id}/keys`,
      `/access/keys/${prefix}/revoke`,
      `/access/keys/${prefix}/replace`,
    ]) {
      expect({
        path,
        ...(await person.browser.post(path, { ...integrationFields, _csrf: 'made-up' })),
      }).toMatchObject({
        path,
        status: 403,
      })
    }
    expect(lastKey(portal).status).toBe('active')
  })
})
