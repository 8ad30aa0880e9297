/** The pages beside the straight path to a key: each is opened as people come to it, and looked at. */
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { reach } from './keyboard.ts'
import type { Portal } from './service.ts'
import type { Look } from './steps.ts'

/** Each look may load a page. */
const soon = { timeout: 60_000 }

/** What everybody can read, and what goes wrong before signing in. */
export async function tourPublicPages(page: Page, { url }: Portal, look: Look): Promise<void> {
  for (const name of ['docs', 'reference', 'changes', 'data', 'status', 'no-such-page']) {
    await page.goto(`${url}/${name}`)
    await look(name)
  }
  await page.setViewportSize({ width: 390, height: 900 })
  await page.goto(`${url}/docs`)
  // By keyboard alone: on a phone the navigation is a menu in one row.
  await page.getByText('Menu', { exact: true }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'Reference', exact: true }).first().waitFor()
  await look('menu', 'header')
  await page.getByLabel('curl').first().focus()
  await page.keyboard.press('ArrowRight')
  await page.reload()
  for (const tab of await page.getByLabel('TypeScript').all()) expect(await tab.isChecked()).toBe(true)
  await page.getByText('first-call.ts', { exact: true }).waitFor()
  await page.goto(`${url}/sign-in`)
  await page.getByLabel('E-mail address').fill('ada..l@example.com')
  await page.getByRole('button', { name: 'Send me a code' }).click()
  await page.getByText(/^The address .+\.$/).waitFor()
  await look('sign-in-fault')
  await page.goto(`${url}/sign-in/link?token=over`)
  await page.getByRole('heading', { name: 'This link is over' }).waitFor()
  await look('sign-in-link-over')
}

/** From a question of the page for data teams to its answer in ClickHouse's play page. */
export async function openExample(page: Page, { url }: Portal): Promise<void> {
  const question = 'Which currencies do campaigns use'
  // The page waits for its pictures only for seconds.
  await expect
    .poll(async () => {
      await page.goto(`${url}/data`)
      return page.getByRole('region', { name: 'Top campaigns' }).getByRole('rowheader').count()
    }, soon)
    .toBeGreaterThan(0)
  // On a phone each cell begins with its name, but not a bar.
  await page.setViewportSize({ width: 390, height: 900 })
  const nameOf = (cell: string) =>
    page.evaluate(`getComputedStyle(document.querySelector('[data-label=${cell}]'), '::before').content`)
  expect(await nameOf('Backers')).toContain('Backers')
  expect(await nameOf('Bar')).toBe('none')
  await page.setViewportSize({ width: 1_280, height: 900 })
  await page.locator('summary', { hasText: question }).click()
  await page.getByRole('link', { name: `Open in the play page ${question}` }).click()
  // The field is there before the script that fills it.
  await expect.poll(() => page.locator('#query').inputValue(), soon).toContain('FROM crowdfunding.campaigns')
  await page.getByRole('button', { name: 'Run' }).click()
  await page.getByText('pledged_in_currency').first().waitFor()
}

/** The pages of an account that has as many keys as it can have. */
export async function lookAtFullAccess(page: Page, { url }: Portal, look: Look): Promise<void> {
  await page.goto(`${url}/access`)
  await page.getByText('You have 3 of 3 active keys.').waitFor()
  expect(await page.getByRole('link', { name: 'Create a key' }).count()).toBe(0)
  await look('access-three-keys')
  await page.getByRole('link', { name: 'New key like this' }).first().click()
  await page.getByText('Revoke one of them first.').waitFor()
  await look('key-like-no-room')
}

/** The account up to its deletion. */
export async function deleteAccount(page: Page, { url }: Portal, look: Look): Promise<void> {
  await page.goto(`${url}/account`)
  await look('account')
  await page.getByRole('main').getByRole('link', { name: 'Delete the account' }).click()
  await look('account-delete')
  await page.getByRole('button', { name: 'Delete the account' }).click()
  await page.getByRole('heading', { name: 'The account is deleted' }).waitFor()
  await look('account-deleted')
}

/** From the page of a new key, whose key and secret go along. */
export async function sendFromReference(page: Page, look: Look): Promise<void> {
  await page.getByRole('link', { name: 'Open the reference with this key' }).click()
  await page.getByRole('heading', { name: 'Reference', exact: true }).waitFor()
  // By keyboard alone, as the rest of the path is without scripts.
  await reach(page, 'Send the request')
  await page.keyboard.press('Space')
  await page.getByText('Status 200').waitFor()
  await page.getByText(/^\d+ headers$/).waitFor()
  await look('reference-answer', '.answer')
  // Whatever is typed is one word for the shell.
  await page.locator('[name=slug]').fill("'; rm -rf ~; ' \ud800$&")
  const line = await page.locator('code', { hasText: '/api/v1/projects/%27' }).textContent()
  expect(line?.match(/'/g)).toHaveLength(2)
  expect(line).toMatch(/^[!-~ \n]*$/)
}
