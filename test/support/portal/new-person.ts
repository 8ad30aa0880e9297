/** A portal, and a person who signs in for the first time and makes an integration and keys there, with a browser alone. */
import { expect, vi } from 'vitest'
import { freePort } from '../../../services/runtime/free-port.ts'
import type { Deployment } from '../deployment.ts'
import { type Browser, createBrowser, submit } from './browser.ts'
import type { MailServer } from './mail-server.ts'

export interface NewPerson {
  email: string
  browser: Browser
}

// Only a hang takes this long, also on a busy machine.
const soon = { timeout: 60_000, interval: 100 }

/** Starts a portal of the deployment, and resolves with its URL when it is ready. */
export async function startReadyPortal(
  deployment: Deployment,
  settings: Readonly<Record<string, string>>,
): Promise<string> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const own = { PLEDGEVIEW_PORTAL_URL: url, PLEDGEVIEW_PORTAL_PORT: String(port) }
  const { opsUrl } = await deployment.startPortal({ ...settings, ...own })
  await expect.poll(async () => (await fetch(`${opsUrl}/readyz`)).status, soon).toBe(200)
  return url
}

/** Signs in at this portal, and makes an integration. The address must be new to the portal. */
export async function signUp(portalUrl: string, email: string, mailServer: MailServer): Promise<NewPerson> {
  const browser = createBrowser(portalUrl)
  await submit(browser, '/sign-in', /^\/sign-in$/, { email })
  const mailsTo = () => mailServer.mails.filter(({ to }) => to.includes(email))
  await vi.waitFor(() => expect(mailsTo()).toHaveLength(1), soon)
  const code = /^ {4}(\d{4} \d{4})$/m.exec(mailsTo()[0]?.email.text ?? '')?.[1] ?? ''
  expect(await submit(browser, '/sign-in/code', /^\/sign-in\/code$/, { code })).toMatchObject({ status: 303 })
  const integration = { name: 'Board', url: 'https://board.example', contact_email: 'ops@board.example' }
  await submit(browser, '/access/integrations/new', /^\/access\/integrations$/, integration)
  return { email, browser }
}

/** Makes a key of the person's integration. Returns the headers with it, as its page shows them. */
export async function createKeyAt(browser: Browser): Promise<Record<string, string>> {
  const { status, text } = await submit(browser, '/access', /\/keys$/)
  const key = /pv_live_[0-9A-Za-z]{24}/.exec(text)?.[0] ?? ''
  const secret = /pv_secret_[0-9A-Za-z]+/.exec(text)?.[0] ?? ''
  expect({ status, isShown: key !== '' && secret !== '' }, text).toEqual({ status: 200, isShown: true })
  return { 'X-API-Key': key, 'X-API-Secret': secret }
}
