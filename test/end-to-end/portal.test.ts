/** A person's whole path through the portal of the embedded service, as a browser without JavaScript goes it. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  makeDataDirectory,
  type ServiceProcess,
  startServiceProcess,
} from '../support/deployment/service-process.ts'
import { createKey } from '../support/portal/access-forms.ts'
import { createBrowser, submit } from '../support/portal/browser.ts'

const directory = makeDataDirectory()
let service: ServiceProcess
let url: string

beforeAll(async () => {
  service = await startServiceProcess(['--no-demo', '--data-dir', directory.path])
  url = /Open the portal: (\S+)/.exec(service.output())?.[1] ?? ''
})

afterAll(async () => {
  await service?.stop()
  directory.remove()
})

function latestMail(): string {
  const folder = join(directory.path, 'outbox')
  const [last = ''] = readdirSync(folder).sort().reverse()
  return readFileSync(join(folder, last), 'utf8')
}

test('npm start prints the address of the portal first, and keeps its files from others', () => {
  expect(service.output()).toMatch(/^Open the portal: http:\/\/127\.0\.0\.1:\d+\n/m)
  expect(service.output().indexOf('Open the portal')).toBeLessThan(service.output().indexOf('serves'))
  expect(statSync(join(directory.path, 'portal.sqlite')).mode & 0o077).toBe(0)
  expect(JSON.parse(readFileSync(join(directory.path, 'secrets.json'), 'utf8'))).toMatchObject({
    portal_key: expect.stringMatching(/^[0-9a-f]{64}$/),
  })
})

test('from the mail to a key that the API takes, and back to nothing', async () => {
  const browser = createBrowser(url)
  expect((await browser.get('/')).status).toBe(200)
  await submit(browser, '/sign-in', /^\/sign-in$/, { email: 'ada@example.com' })
  const code = /^ {4}(\d{4} \d{4})$/m.exec(latestMail())?.[1] ?? ''
  await expect.poll(() => service.output()).toContain('Mail to ada@example.com')
  const signedIn = await submit(browser, '/sign-in/code', /^\/sign-in\/code$/, { code })
  expect(signedIn).toMatchObject({ status: 303, location: '/access' })

  const made = await createKey({ browser })
  expect(made.status).toBe(200)
  const key = /pv_live_[0-9A-Za-z]{24}/.exec(made.text)?.[0] ?? ''
  const secret = /pv_secret_[0-9A-Za-z]+/.exec(made.text)?.[0] ?? ''
  const call = () =>
    fetch(`${service.apiUrl}/projects`, { headers: { 'x-api-key': key, 'x-api-secret': secret } })
  // The API looks for new keys twice a second.
  await expect.poll(async () => (await call()).status).toBe(200)
  for (const address of ['ada@example.com', 'ops@board.example']) {
    await expect
      .poll(() => service.output(), { timeout: 60_000 })
      .toContain(`Mail to ${address}: A new API key was created`)
  }

  const deleted = await submit(browser, '/account/delete', /^\/account\/delete$/)
  expect(deleted).toMatchObject({ status: 303, location: '/account/deleted' })
  await expect.poll(async () => (await call()).status).toBe(401)
  expect((await browser.get('/account')).status).toBe(303)
  const log = service.output().replaceAll(/^(Mail to|Subject:).*$/gm, '')
  expect(log).not.toContain(secret)
})
