/** What a person does in the portal, by the names that a screen reader reads. */
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import type { Portal } from './service.ts'

/** `part`: of the page, the rest of which was looked at before. */
export type Look = (name: string, part?: string) => Promise<void>

/** From the first page to the empty page of the API access, by the link of the mail. */
export async function signUp(
  page: Page,
  { portal, email, look }: { portal: Portal; email: string; look: Look },
): Promise<void> {
  await page.goto(portal.url)
  await look('landing')
  await page.getByRole('link', { name: 'Get a key' }).click()
  await look('sign-in')
  await page.getByLabel('E-mail address').fill(email)
  await page.getByRole('button', { name: 'Send me a code' }).click()
  await page.getByRole('heading', { name: 'Check your inbox' }).waitFor()
  await page.getByText(`a link to ${email}`).waitFor()
  await look('sign-in-code')
  const mail = portal.mailTo(email)
  if (!mail) throw new Error(`no sign-in mail to ${email} was printed`)
  await page.goto(mail.link)
  await page.getByText(email).waitFor()
  await look('sign-in-link')
  await page
    .getByRole('main')
    .getByRole('button', { name: 'Sign in' })
    .click(await twice(page))
  await page.getByRole('heading', { name: 'API access' }).waitFor()
  await look('access-empty')
}

/** Creates a key; the first try has faults. */
export async function createKey(page: Page, look: Look): Promise<void> {
  await page.getByRole('link', { name: 'Create a key' }).click()
  await look('key-new')
  await page.getByLabel('Name').fill('Campaign board')
  await page.getByLabel('Contact').fill('')
  await page.getByRole('button', { name: 'Create the key' }).click()
  await page.getByText('Nothing was saved.').waitFor()
  await look('key-faults')
  expect(await page.getByLabel('Name').inputValue()).toBe('Campaign board')
  await page.getByLabel('Web address').fill('https://board.example')
  await page.getByLabel('Contact').fill('ops@board.example')
  await page.getByRole('button', { name: 'Create the key' }).click(await twice(page))
  await page.getByRole('heading', { name: 'Your new key' }).waitFor()
}

/** A double click, where scripts run: it signs in all the same, and makes one key and shows its secret. */
async function twice(page: Page) {
  const isScripted = await page.locator('html.scripted').count()
  return { clickCount: isScripted ? 2 : 1, delay: 10 }
}

/** Opens the page of the only key, or of the latest. */
export async function openKey(page: Page, portal: Portal): Promise<void> {
  await page.goto(`${portal.url}/access`)
  await page.getByRole('rowheader').getByRole('link').last().click()
  await page.getByRole('heading', { name: /^Key / }).waitFor()
}

/** Reloads the page of a key until it shows what was counted. */
export async function waitForUsage(page: Page): Promise<void> {
  await expect
    .poll(
      async () => {
        await page.reload()
        return page.locator('p', { hasText: /[1-9] requests? in the last 30 days: [1-9]/ }).count()
      },
      { timeout: 120_000, interval: 500 },
    )
    .toBe(1)
}

/** Searches a request of the key whose page is open by its id, and comes back. */
export async function findRequest(page: Page, look: Look): Promise<void> {
  const path = new URL(page.url()).pathname
  await page.getByRole('link', { name: 'Its requests' }).click()
  await page.getByLabel('Time').selectOption('By hour, 72 hours')
  const id = await page.getByRole('table').last().locator('code').last().textContent()
  await page.getByLabel('X-Request-Id').fill(id?.slice(0, 13) ?? '')
  await page.getByRole('button', { name: 'Show' }).click()
  await page.getByText('Requests whose id begins with').waitFor()
  expect(await page.getByText(id ?? 'none', { exact: true }).count()).toBe(1)
  await look('requests')
  await page.goto(new URL(path, page.url()).href)
}

/** Saves the key whose page is open. */
export async function editKey(page: Page, look: Look): Promise<void> {
  await page.getByRole('link', { name: 'Edit' }).click()
  await look('key-edit')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('The key was saved.').waitFor()
}

/** Creates a key like the one whose page is open; the old one works on. */
export async function createKeyLike(page: Page, look: Look): Promise<void> {
  await page.getByRole('link', { name: 'New key like this' }).click()
  await page.getByRole('heading', { name: 'Create a key' }).waitFor()
  expect(await page.getByLabel('Name').inputValue()).toBe('Campaign board')
  await look('key-like')
  await page.getByRole('button', { name: 'Create the key' }).click()
  await page.getByRole('heading', { name: 'Your new key' }).waitFor()
}

/** Revokes the latest key. */
export async function revokeKey(page: Page, portal: Portal, look: Look): Promise<void> {
  await openKey(page, portal)
  await page.getByRole('link', { name: 'Revoke this key' }).click()
  await look('revoke')
  await page.getByRole('button', { name: 'Revoke this key' }).click()
  await page.getByText('The key was revoked.').waitFor()
}
