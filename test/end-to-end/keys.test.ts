/** API keys from the command line to the API: issue without a service, list, revoke. */
import { afterAll, describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../contracts/events/event.ts'
import { formatEvent } from '../../contracts/events/ndjson.ts'
import {
  makeDataDirectory,
  runCli,
  type ServiceProcess,
  startServiceProcess,
} from '../support/deployment/service-process.ts'
import { apiKeyEvent, campaignEvent } from '../support/events/sample-events.ts'

const directory = makeDataDirectory()
let service: ServiceProcess | undefined

interface Issued {
  key: string
  secret: string
}

describe('API keys', () => {
  afterAll(async () => {
    await service?.stop()
    directory.remove()
  })

  test('can be issued while no service runs, and open the API afterwards; their secrets are nowhere in the list', async () => {
    await append(campaignEvent({ campaign_id: 'a' }))
    const { key, secret } = await issue('offline')
    service = await startServiceProcess(['--no-demo', '--data-dir', directory.path])
    await expect.poll(() => statusWith(key, secret)).toBe(200)
    const listed = await keys('list', '--account', 'offline', '--json')
    expect(listed.code).toBe(0)
    expect(listed.stdout).not.toContain(secret)
    expect(JSON.parse(listed.stdout)).toMatchObject({
      keys: [{ key_prefix: key.slice(0, 16), status: 'active' }],
    })
  })

  test('the name of an integration cannot move the cursor of the terminal that lists it', async () => {
    const name = 'Mirror\u001b[2J\u009b1A\u202e'
    const refused = await keys(
      'issue',
      '--account',
      'hostile',
      '--name',
      name,
      '--url',
      'https://example.com',
    )
    expect(refused.code).toBe(2)
    expect(refused.stderr).toMatch(/--name has line breaks.*, --email is missing/)
    // The platform's own events are not checked so.
    const key = 'pv_live_hostile0123456789'
    const contact = { url: 'https://example.com', contact_email: 'a@example.com' }
    const event = apiKeyEvent({ key, account_id: 'hostile', integration: { name, ...contact } })
    await append(event)
    await expect.poll(() => statusesOf('hostile')).toEqual(['active'])
    const listed = await keys('list', '--account', 'hostile')
    expect(listed.stdout).toContain('Mirror\\u{1b}[2J\\u{9b}1A\\u{202e}\n')
    const revoked = await keys('revoke', key.slice(0, 16))
    expect(revoked).toMatchObject({ code: 0 })
    expect(revoked.stdout).toContain('(Mirror\\u{1b}[2J\\u{9b}1A\\u{202e})')
    const [asJson] = JSON.parse((await keys('list', '--account', 'hostile', '--json')).stdout).keys
    expect(asJson).toMatchObject({ name, status: 'revoked' })
    const again = await keys('revoke', key)
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('revoked already') })
  })
})

function keys(...args: string[]) {
  return runCli(['keys', ...args, '--data-dir', directory.path])
}

/** The first event makes the data directory. */
async function append(event: ChangeEvent): Promise<void> {
  const appended = await runCli(
    ['events', 'append', '-', '--data-dir', directory.path],
    `${formatEvent(event)}\n`,
  )
  expect(appended).toMatchObject({ code: 0 })
}

async function issue(account: string): Promise<Issued> {
  const who = [
    '--account',
    account,
    '--name',
    'n',
    '--url',
    'https://example.com',
    '--email',
    'a@example.com',
  ]
  const { code, stdout, stderr } = await keys('issue', ...who, '--json')
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout) as Issued
}

async function statusesOf(account: string): Promise<string[]> {
  const listed = JSON.parse((await keys('list', '--account', account, '--json')).stdout)
  return listed.keys.map((key: { status: string }) => key.status)
}

async function statusWith(key: string, secret: string): Promise<number> {
  const response = await fetch(`${service?.apiUrl}/stats`, {
    headers: { authorization: `Bearer ${key}:${secret}` },
  })
  await response.arrayBuffer()
  return response.status
}
