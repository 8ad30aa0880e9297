/** A person's whole path through the portal, in a real browser: from the first page to a key, and back to none. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { needs, shellWithCurl } from '../support/runner/requirements.ts'
import { chromiumProgram, openChromium, openWindow } from './chromium.ts'
import { walkByKeyboard } from './keyboard.ts'
import { lookAt } from './look.ts'
import { type Portal, soon, startPortal, statusOf } from './service.ts'
import {
  createKey,
  createKeyLike,
  editKey,
  findRequest,
  type Look,
  openKey,
  revokeKey,
  signUp,
  waitForUsage,
} from './steps.ts'
import { deleteAccount, lookAtFullAccess, openExample, sendFromReference, tourPublicPages } from './tour.ts'

let portal: Portal
let browser: Browser

beforeAll(async () => {
  if (!chromiumProgram.isMet || !shellWithCurl.isMet) return
  browser = await openChromium()
  portal = await startPortal()
}, 180_000)

afterAll(async () => {
  await browser?.close()
  await portal?.close()
}, 120_000)

beforeEach(context => {
  needs(context, chromiumProgram)
  needs(context, shellWithCurl)
})

test('a person gets a key by the mailed link, uses it, moves to another one, revokes one and leaves, on pages that everybody can use', async () => {
  const { page, complaints, close } = await openWindow(browser, { scripts: true })
  const look: Look = (name, part) => lookAt(page, name, { part })
  await tourPublicPages(page, portal, look)
  await signUp(page, { portal, email: 'ada@example.com', look })
  await createKey(page, look)
  const copied = async () => {
    await Promise.all([page.evaluate(untilCopied), page.getByRole('button', { name: 'Copy curl' }).click()])
    return page.evaluate<string>('navigator.clipboard.readText()')
  }
  const first = await copied()
  await look('secret')
  // The reference asks once, so the API has to know the key.
  await expect.poll(() => statusOf(first), soon).toBe(200)
  await sendFromReference(page, look)

  await openKey(page, portal)
  await look('key-unused')
  expect(await statusOf(first)).toBe(200)
  await waitForUsage(page)
  await look('key-used')
  await findRequest(page, look)
  await editKey(page, look)
  await openKey(page, portal)
  await createKeyLike(page, look)
  const second = await copied()
  expect(second).not.toBe(first)
  await expect.poll(() => statusOf(second), soon).toBe(200)
  expect(await statusOf(first)).toBe(200)
  await openKey(page, portal)
  await createKeyLike(page, look)
  const third = await copied()
  await lookAtFullAccess(page, portal, look)

  await revokeKey(page, portal, look)
  await look('access-revoked')
  await expect.poll(() => statusOf(third), soon).toBe(401)
  expect(await statusOf(first)).toBe(200)
  await deleteAccount(page, portal, look)
  expect(complaints).toEqual([])
  await close()
}, 900_000)

test('the keyboard alone is enough, in a browser that runs no scripts, from the first page to a key, another key and no account', async () => {
  const { page, complaints, close } = await openWindow(browser, { scripts: false })
  await walkByKeyboard(page, portal)
  expect(complaints).toEqual([])
  await close()
}, 600_000)

test('a question of the page for data teams opens in the play page, and runs there', async () => {
  const { page, complaints, close } = await openWindow(browser, { scripts: true })
  await openExample(page, portal)
  // The play page is ClickHouse's own: it asks for things that analysts may not see.
  expect(complaints.filter(complaint => complaint.startsWith(portal.url))).toEqual([])
  await close()
}, 180_000)

test('a browser without scripts gets a reference that does not scroll sideways, with a curl line for each request', async () => {
  const { page, complaints, close } = await openWindow(browser, { scripts: false })
  await page.goto(`${portal.url}/reference`)
  await page.locator('code', { hasText: "/api/v1/projects/{slug}'" }).waitFor()
  expect(await page.getByRole('button').count()).toBe(0)
  await lookAt(page, 'reference-without-scripts', { scripts: false })
  expect(complaints).toEqual([])
  await close()
}, 180_000)

test('a page with faults is found out: too wide, too pale, with a style that the policy refuses', async () => {
  const { page, complaints, close } = await openWindow(browser, { scripts: true })
  const serve = (body: string) =>
    page.route(`${portal.url}/docs`, route =>
      route.fulfill({
        contentType: 'text/html',
        headers: { 'content-security-policy': "default-src 'none'" },
        body: `<!doctype html><html lang="en"><title>Faults</title><body>${body}</body></html>`,
      }),
    )
  await serve('<table width="2000"><tr><td>wide</table>')
  await page.goto(`${portal.url}/docs`)
  await expect(lookAt(page, 'wide')).rejects.toThrow('scrolls sideways')
  await serve('<p><font color="#eeeeee">pale</font></p>')
  await page.goto(`${portal.url}/docs`)
  await expect(lookAt(page, 'pale')).rejects.toThrow('color-contrast')
  expect(complaints).toEqual([])
  await serve('<p style="margin: 0">refused</p>')
  await page.goto(`${portal.url}/docs`)
  expect(complaints).toEqual([expect.stringContaining('Content Security Policy')])
  await close()
}, 180_000)

// The button says so for two seconds. Who asks from outside may miss them on a busy machine, the page itself does not.
const untilCopied = `new Promise((resolve, reject) => {
  setTimeout(reject, 30_000, new Error('no button says that the text was copied'))
  new MutationObserver(() => {
    const texts = [...document.querySelectorAll('button')].map(button => button.textContent)
    if (texts.includes('Copied')) resolve()
  }).observe(document.body, { childList: true, subtree: true })
})`
