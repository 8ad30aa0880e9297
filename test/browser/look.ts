/**
 * Looks at a page as people meet it: on a phone and on a wide screen, light and dark. It must not scroll sideways, and axe-core
 * must find nothing serious.
 */
import axe, { type RunOnly } from 'axe-core'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

const height = 900
const everything: RunOnly = { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }
/** What the colours or the width can change. The rest of a page is the same text. */
const ofAppearance: RunOnly = {
  type: 'rule',
  values: ['color-contrast', 'link-in-text-block', 'scrollable-region-focusable', 'target-size'],
}
/** Colours depend on the scheme, what stands where on the width: two looks see each of them. */
const looks = [
  { width: 1_280, colorScheme: 'light', runOnly: everything },
  { width: 390, colorScheme: 'dark', runOnly: ofAppearance },
] as const

/**
 * Leaves the page as it was: wide and light. Axe needs timers, which a page without scripts does not have. `part`: axe has seen the rest
 * of the page; it sees everything of the part at each width.
 */
export async function lookAt(
  page: Page,
  name: string,
  { scripts = true, part }: { scripts?: boolean; part?: string | undefined } = {},
): Promise<void> {
  // A click on a link ends as soon as the next page has begun: half of it and no style may be there yet.
  await page.waitForLoadState('load')
  for (const { width, colorScheme, runOnly } of looks) {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize({ width, height })
    const where = `${name}, ${width} px, ${colorScheme}`
    expect(await page.evaluate(overflowInPage), `${where}: scrolls sideways`).toEqual([])
    if (scripts) expect(await faultsOf(page, part ? everything : runOnly, part), where).toBe('')
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize({ width: 1_280, height })
}

/** The elements that reach beyond the right edge, if the page can be scrolled there. */
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
async function faultsOf(page: Page, runOnly: RunOnly, part = 'html'): Promise<string> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe.source)
  const { violations } = await page.evaluate(
    ([only, within]) => (globalThis as unknown as { axe: typeof axe }).axe.run(within, { runOnly: only }),
    [runOnly, part] as const,
  )
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, help, nodes }) =>
        `${id}: ${help}\n${nodes.map(node => node.failureSummary + node.html).join('\n')}`,
    )
    .join('\n')
}
