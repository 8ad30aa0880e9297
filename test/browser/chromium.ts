/** Chromium of this machine, and windows that note everything that a page complains about. */
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import type { Requirement } from '../support/runner/requirements.ts'

const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)

export const chromiumProgram: Requirement = {
  isMet: program !== undefined,
  reason: 'Chromium is not installed (apt-get install chromium)',
}

/** Time limit of one step: a busy machine is no failure. */
const stepMsMax = 30_000
/** Nor is a program of hundreds of megabytes that is read from the disk for the first time. */
const startMsMax = 120_000

export function openChromium(): Promise<Browser> {
  return chromium.launch({
    ...(program !== undefined && { executablePath: program }),
    // Chromium has no sandbox for root. Small machines give containers little shared memory.
    args: [...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), '--disable-dev-shm-usage'],
    timeout: startMsMax,
  })
}

/** A window of its own: no cookies yet, and animations off, so that a picture does not depend on the moment. */
export async function openWindow(browser: Browser, { scripts }: { scripts: boolean }) {
  const context = await browser.newContext({
    javaScriptEnabled: scripts,
    reducedMotion: 'reduce',
    viewport: { width: 1_280, height: 900 },
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  context.setDefaultTimeout(stepMsMax)
  const page = await context.newPage()
  /** Errors on the console, uncaught exceptions, and what the page's policy kept from loading. */
  const complaints: string[] = []
  page.on('console', message => {
    // Chromium also names the status of the page itself, for example 422 for a form with faults. That is meant.
    const isOwnStatus =
      message.location().url === page.url() && message.text().startsWith('Failed to load resource')
    if (!isOwnStatus && ['error', 'warning'].includes(message.type()))
      complaints.push(`${page.url()}: ${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', error => complaints.push(`${page.url()}: ${error.message}`))
  return { page, complaints, close: () => context.close() }
}
