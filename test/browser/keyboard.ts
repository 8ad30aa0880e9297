/**
 * The path from the first page to a key and back, with Tab, Enter, Space and letters: no mouse, no script of the page, and nothing
 * that a program alone can do.
 */
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { type Portal, soon, statusOf } from './service.ts'
import { waitForUsage } from './steps.ts'

/** More than any page has. */
const stopsMax = 150

export async function walkByKeyboard(page: Page, portal: Portal): Promise<void> {
  const email = 'tab@example.com'
  await page.goto(portal.url)
  await go(page, 'Get a key', 'Sign in')
  await type(page, 'E-mail address', email)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Check your inbox' }).waitFor()
  await type(page, 'Code', portal.mailTo(email)?.code ?? 'no mail')
  await go(page, 'Sign in', 'API access')

  await go(page, 'Create a key', 'Create a key')
  await type(page, 'Name', 'Keyboard board')
  await reach(page, 'Create the key')
  await page.keyboard.press('Enter')
  await page.getByText('Nothing was saved.').waitFor()
  // The fault is a link to its field.
  await reach(page, 'Web address')
  await page.keyboard.press('Enter')
  // What is typed before the browser has followed the link is lost.
  await expect.poll(() => page.evaluate('document.activeElement.name'), soon).toBe('url')
  await page.keyboard.type('https://board.example')
  await go(page, 'Create the key', 'Your new key')
  const first = await curlLineOf(page)
  await expect.poll(() => statusOf(first), soon).toBe(200)
  await go(page, 'API access', 'API access')
  await go(page, 'Keyboard board', /^Key /)
  await waitForUsage(page)

  await go(page, 'New key like this', 'Create a key')
  await go(page, 'Create the key', 'Your new key')
  const second = await curlLineOf(page)
  const statuses = () => Promise.all([first, second].map(statusOf))
  await expect.poll(statuses, soon).toEqual([200, 200])

  await go(page, 'API access', 'API access')
  await go(page, 'Revoke', /^Revoke/)
  await reach(page, 'Revoke this key')
  await page.keyboard.press('Enter')
  await page.getByText('The key was revoked.').waitFor()
  await expect.poll(statuses, soon).toEqual([401, 200])

  await go(page, 'Account', 'Account')
  await go(page, 'Delete the account', /^Delete/)
  await go(page, 'Delete the account', 'The account is deleted')
}

async function curlLineOf(page: Page): Promise<string> {
  return (await page.locator('#curl').textContent()) ?? ''
}

/** Follows a link or presses a button, up to the page with this heading. */
async function go(page: Page, name: string, heading: string | RegExp): Promise<void> {
  await reach(page, name)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: heading, level: 1 }).waitFor()
  await page.waitForLoadState('load')
}

async function type(page: Page, label: string, text: string): Promise<void> {
  await reach(page, label)
  await page.keyboard.type(text)
}

/** Tabs to the element with this name. Where one is can be seen at each stop. */
export async function reach(page: Page, name: string): Promise<void> {
  const seen: string[] = []
  for (let stops = 0; stops < stopsMax; stops++) {
    await page.keyboard.press('Tab')
    const at = await page.evaluate<{ name: string; isShown: boolean }>(focusInPage)
    expect(at.isShown, `${page.url()}: the focus on "${at.name}" cannot be seen`).toBe(true)
    if (at.name === name || at.name.startsWith(`${name} `)) return
    seen.push(at.name)
  }
  throw new Error(`${page.url()}: Tab does not reach "${name}", only ${[...new Set(seen)].join(', ')}`)
}

// Text, because it runs in the page: the types of this program are those of Node.
const focusInPage = `(() => {
  const element = document.activeElement
  const name = element.labels?.[0]?.textContent ?? element.getAttribute('aria-label') ?? element.textContent ?? ''
  const { outlineStyle, boxShadow } = getComputedStyle(element)
  const isShown = element === document.body || outlineStyle !== 'none' || boxShadow !== 'none'
  return { name: name.trim().replace(/\\s+/g, ' '), isShown }
})()`
