/**
 * Looks at a page as people meet it: on a phone and on a wide screen, light and dark. It must not scroll sideways, and axe-core
 * must find nothing serious. With SCREENSHOTS_FOLDER set to a folder it also leaves pictures there.
 */
import { join } from 'node:path'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

const widths = [390, 1_280] as const
const schemes = ['light', 'dark'] as const
const height = 900
/** Colours depend on the scheme, what stands where on the width: axe, which is slow, sees each of them once. */
const withAxe = new Set(['light 1280', 'dark 390'])
const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
const folder = process.env.SCREENSHOTS_FOLDER

/** Leaves the page as it was: wide and light. Axe needs timers, which a page without scripts does not have. */
export async function lookAt(page: Page, name: string, { scripts = true } = {}): Promise<void> {
  // A click on a link ends as soon as the next page has begun: half of it and no style may be there yet.
  await page.waitForLoadState('load')
  for (const colorScheme of schemes) {
    await page.emulateMedia({ colorScheme })
    for (const width of widths) {
      await page.setViewportSize({ width, height })
      const where = `${name}, ${width} px, ${colorScheme}`
      expect(await overflowOf(page), `${where}: scrolls sideways`).toEqual([])
      if (scripts && withAxe.has(`${colorScheme} ${width}`)) expect(await faultsOf(page), where).toBe('')
      if (folder) {
        const path = join(folder, `${name}-${width}-${colorScheme}.png`)
        await page.screenshot({ path, fullPage: true })
      }
    }
  }
  await page.emulateMedia({ colorScheme: 'light' })
}

/** The elements that reach beyond the right edge, if the page can be scrolled there. */
async function overflowOf(page: Page): Promise<string[]> {
  return page.evaluate(overflowInPage)
}

// Text, because it runs in the page: the types of this program are those of Node.
const overflowInPage = `(() => {
  const root = document.documentElement
  if (root.scrollWidth <= root.clientWidth) return []
  const beyond = [...document.body.querySelectorAll('*')].filter(
    element => element.getBoundingClientRect().right > root.clientWidth + 1,
  )
  return ['the page', ...beyond.map(element => element.outerHTML.slice(0, 150))].slice(0, 10)
})()`

/** What axe-core calls serious or critical, each with the places. */
async function faultsOf(page: Page): Promise<string> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe.source)
  const { violations } = await page.evaluate(
    values => (globalThis as unknown as { axe: typeof axe }).axe.run({ runOnly: { type: 'tag', values } }),
    rules,
  )
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, help, nodes }) =>
        `${id}: ${help}\n${nodes.map(node => node.failureSummary + node.html).join('\n')}`,
    )
    .join('\n')
}
