/** The pages under /access on what they run on: accounts and keys in a journal, a projector, and ClickHouse. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { keyPrefix, verifySecret } from '../../../../services/api-keys/credentials.ts'
import { openAccounts } from '../../../../services/portal/account/accounts.ts'
import type { Accounts } from '../../../../services/portal/ports.ts'
import { createUsageReader } from '../../../../services/portal/usage/usage-reader.ts'
import { sleep } from '../../../../services/runtime/sleep.ts'
import { type AccessPortal, type Person, startAccessPortal } from '../../../support/portal/access.ts'
import { portalKey } from '../../../support/portal/app.ts'
import { type KeyModel, openKeyModel, pepper } from '../../../support/portal/key-model.ts'
import { createTestRecorder } from '../../../support/usage.ts'

let model: KeyModel
let accounts: Accounts
let portal: AccessPortal
let person: Person

beforeAll(async () => {
  model = await openKeyModel()
  const { keys, admin } = await model.openPortal()
  accounts = await openAccounts({ ...model, ...admin, portalKey, sleep })
  const usage = createUsageReader({ ...model, now: Date.now })
  portal = await startAccessPortal({ accounts, keys, usage })
  person = await portal.signIn('ada@example.com')
})

afterAll(async () => {
  await portal?.close()
  await model?.close()
})

const fields = { name: 'Backer Board', url: 'https://board.example/', contact_email: 'ops@board.example' }

/** Opens the page, and sends its form with this action. */
async function send(page: string, action: string, values: Record<string, string> = {}) {
  const { text } = await person.browser.get(page)
  const form = text.slice(text.indexOf(`action="${action}"`))
  const token = /name="token" value="([^"]*)"/.exec(form)?.[1] ?? ''
  return person.browser.post(action, { ...values, token })
}

function shown(text: string, id: string): string {
  return new RegExp(`<code id="${id}">([^<]*)</code>`).exec(text)?.[1] ?? `no ${id} on the page`
}

async function record(key: string) {
  const { admin } = await model.openPortal()
  return (await admin.directory.find(key))[0]
}

it('leads from an integration to keys that work, count, are replaced and revoked', async () => {
  expect((await send('/access/integrations/new', '/access/integrations', fields)).location).toBe(
    '/access?done=added',
  )
  const [integration] = await accounts.integrations(person.account.account_id)
  const create = `/access/integrations/${integration?.integration_id}/keys`

  // The answer is there only when the key is active, with the secret that the API accepts.
  const created = await send('/access', create)
  const key = shown(created.text, 'key')
  const first = await record(key)
  expect(first).toMatchObject({ status: 'active', integration_id: integration?.integration_id })
  expect(verifySecret(pepper, shown(created.text, 'secret'), first?.secret_hash)).toBe(true)

  const recorder = createTestRecorder(model.tables, model.databases, 'query')
  await recorder.start()
  recorder.count(key, 200, false)
  recorder.count(key, 200, true)
  recorder.count(key, 304, false)
  await recorder.close()
  const page = `/access/keys/${keyPrefix(key)}`
  const { text } = await person.browser.get(page)
  expect(text).toContain('3 requests in the last 30 days: 2 answers 200, 1 answer 304.')
  expect(text).toContain('1 request went to a deprecated version of the API.')

  const replaced = await send(`${page}/replace`, `${page}/replace`, { overlap: 'one-hour' })
  const second = shown(replaced.text, 'key')
  expect(await record(second)).toMatchObject({ status: 'active', replaces: key })
  expect((await person.browser.get(page)).text).toContain('Active, being replaced')

  // A third one, and the account is full: an overlap has no room, and the page says so.
  const third = shown((await send('/access', create)).text, 'key')
  expect((await person.browser.get('/access')).text).toContain('You have 3 of 3 active keys.')
  const full = `/access/keys/${keyPrefix(third)}/replace`
  const refused = await send(full, full, { overlap: 'one-day' })
  expect(refused.status).toBe(409)
  expect(refused.text).toContain('Three keys are active')
  const atOnce = await send(full, full, { overlap: 'at-once' })
  expect(await record(shown(atOnce.text, 'key'))).toMatchObject({ status: 'active' })
  expect(await record(third)).toMatchObject({ status: 'revoked' })

  const removal = `/access/integrations/${integration?.integration_id}/remove`
  expect((await send(removal, removal)).location).toBe('/access?done=removed')
  for (const ended of [key, second]) expect(await record(ended)).toBeUndefined()
  expect(await accounts.integrations(person.account.account_id)).toEqual([])
  expect((await person.browser.get('/access')).text).toContain('You have 0 of 3 active keys.')
})
