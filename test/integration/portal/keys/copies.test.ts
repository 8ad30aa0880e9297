/** Whole copies for people who are signed in, on the real app. */
import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { folderName } from '../../../../services/exports/latest.ts'
import { type Person, startTestPortal, type TestPortal } from '../../../support/portal/app.ts'
import { submit } from '../../../support/portal/browser.ts'

const file = '/access/copies/campaigns.parquet'
let directory: string
let portal: TestPortal
let person: Person
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pledgeview-copies-'))
  portal = await startTestPortal({ options: { PLEDGEVIEW_EXPORT_DIR: directory } })
  person = await portal.signIn('a@example.com')
})
afterEach(async () => {
  await portal.close()
  await rm(directory, { recursive: true })
})

describe('the latest whole copy', () => {
  it('is offered to people who are signed in, whole and in parts', async () => {
    expect((await person.browser.get('/access')).text).not.toContain('Everything at once')
    expect((await person.browser.get(file)).status).toBe(404)
    await writeCopy('PAR1 and more')
    const { text } = await person.browser.get('/access')
    expect(text).toContain('All 1,391 public campaigns')
    expect(text).toContain(`href="${file}"`)
    const whole = await person.browser.get(file)
    expect([whole.status, whole.text]).toEqual([200, 'PAR1 and more'])
    expect(whole.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(whole.headers.get('content-disposition')).toContain('attachment')
    const part = await person.browser.get(file, { range: 'bytes=0-3' })
    expect([part.status, part.text]).toEqual([206, 'PAR1'])
    const beyond = await person.browser.get(file, { range: 'bytes=99-' })
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([
      416,
      expect.stringMatching(/^bytes \*\/\d+$/),
    ])
    expect((await portal.browser().get(file)).location).toContain('/sign-in?next=')
  })

  it('stops coming when its session ends', async () => {
    vi.useFakeTimers({ toFake: ['setInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    // Larger than all buffers on the way. It takes no room.
    await writeCopy('', 1_000_000_000)
    const cookie = [...person.browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const { body } = await fetch(new URL(file, portal.url), { headers: { cookie } })
    const reader = body?.getReader()
    await reader?.read()
    await vi.advanceTimersByTimeAsync(60_000)
    await reader?.read()
    expect((await submit(person.browser, '/access', /sign-out$/)).status).toBe(303)
    vi.advanceTimersByTime(60_000)
    const readAll = async () => {
      while (!(await reader?.read())?.done);
    }
    await expect(readAll()).rejects.toThrow()
  })
})

async function writeCopy(parquet: string, bytes = parquet.length): Promise<void> {
  const folder = join(directory, folderName(portal.clock.now()))
  await mkdir(folder)
  const as_of = new Date(portal.clock.now()).toISOString()
  const files = [{ name: 'campaigns.parquet', bytes, sha256: 'a'.repeat(64) }]
  const rest = { campaigns: 1391, api_version: 'v1', program_version: '1.0.0', files }
  await writeFile(join(folder, 'campaigns.parquet'), parquet)
  await truncate(join(folder, 'campaigns.parquet'), bytes)
  await writeFile(join(folder, 'manifest.json'), JSON.stringify({ as_of, created_at: as_of, ...rest }))
}
