/** API keys from the command line to the API: issue, list, revoke, and the bound on active keys. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatEvent } from '../../contracts/events/ndjson.ts'
import { defaultKeyRingOptions } from '../../services/query/auth/key-ring.ts'
import {
  makeDataDirectory,
  runCli,
  type ServiceProcess,
  startServiceProcess,
} from '../support/deployment/service-process.ts'
import { apiKeyEvent } from '../support/events/sample-events.ts'

const directory = makeDataDirectory()
let service: ServiceProcess

interface Issued {
  key: string
  secret: string
}

describe('API keys', () => {
  beforeAll(async () => {
    service = await startServiceProcess(['--no-demo', '--data-dir', directory.path])
  })

  afterAll(async () => {
    await service.stop()
    directory.remove()
  })

  test('an issued key opens the API, and its secret is nowhere in the list', async () => {
    const { key, secret } = await issue('first')
    await expect.poll(() => statusWith(key, secret)).toBe(200)
    const listed = await keys('list', '--account', 'first', '--json')
    expect(listed.code).toBe(0)
    expect(listed.stdout).not.toContain(secret)
    expect(JSON.parse(listed.stdout)).toMatchObject({
      keys: [{ key_prefix: key.slice(0, 16), status: 'active' }],
    })
  })

  test('a revoked key is refused, by looks that are less than two seconds apart', async () => {
    const { key, secret } = await issue('revoked')
    await expect.poll(() => statusWith(key, secret)).toBe(200)
    const revoked = await keys('revoke', key.slice(0, 16), '--json')
    expect(revoked.code, revoked.stderr).toBe(0)
    await expect.poll(() => statusWith(key, secret)).toBe(401)
    // How long a look takes is up to the machine. A look that takes longer than this is not what is promised.
    const { pollMs, pollMsMax } = defaultKeyRingOptions
    expect(pollMs + pollMsMax).toBeLessThan(2_000)
    expect((await keys('revoke', key)).code).toBe(1)
  })

  test('of four keys that are issued at once, three become active, and the other one says why it did not', async () => {
    const results = await Promise.all([1, 2, 3, 4].map(() => keys(...issueArguments('crowd'))))
    expect(results.map(result => result.code).sort()).toEqual([0, 0, 0, 1])
    const refused = results.find(({ code }) => code === 1)
    expect(refused?.stdout).toContain('three active keys')
    // A refused key was never shown, so no list has it. Its command waits 5 s for that at most.
    await expect.poll(() => statusesOf('crowd')).toEqual(['active', 'active', 'active'])
  })

  test('the name of an integration cannot move the cursor of the terminal that lists it', async () => {
    const name = 'Mirror\u001b[2J\u009b1A\u202e'
    const refused = await keys(...issueArguments('hostile', name))
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--name has line breaks') })
    // The platform's own events are not checked so.
    const key = 'pv_live_hostile0123456789'
    const contact = { url: 'https://example.com', contact_email: 'a@example.com' }
    const event = apiKeyEvent({ key, account_id: 'hostile', integration: { name, ...contact } })
    const appended = ['events', 'append', '-', '--data-dir', directory.path]
    expect(await runCli(appended, `${formatEvent(event)}\n`)).toMatchObject({ code: 0 })
    await expect.poll(() => statusesOf('hostile')).toEqual(['active'])
    const listed = await keys('list', '--account', 'hostile')
    expect(listed.stdout).toContain('Mirror\\u{1b}[2J\\u{9b}1A\\u{202e}\n')
    const revoked = await keys('revoke', key)
    expect(revoked.stdout).toContain('(Mirror\\u{1b}[2J\\u{9b}1A\\u{202e})')
    const [asJson] = JSON.parse((await keys('list', '--account', 'hostile', '--json')).stdout).keys
    expect(asJson.name).toBe(name)
  })

  test('keys can be issued while no service runs, and open the API afterwards', async () => {
    await service.stop()
    const { key, secret } = await issue('offline')
    service = await startServiceProcess(['--no-demo', '--data-dir', directory.path])
    await expect.poll(() => statusWith(key, secret)).toBe(200)
  })

  test('an argument that is missing or wrong is named, and the exit code is 2', async () => {
    const missing = await keys('issue', '--account', 'a', '--name', 'n', '--url', 'https://example.com')
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('--email is missing') })
    const unknown = await keys('revoke', 'pv_live_0123456789')
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('no key') })
  })
})

function keys(...args: string[]) {
  return runCli(['keys', ...args, '--data-dir', directory.path])
}

function issueArguments(account: string, name = 'n'): string[] {
  const who = [
    '--account',
    account,
    '--name',
    name,
    '--url',
    'https://example.com',
    '--email',
    'a@example.com',
  ]
  return ['issue', ...who, '--json']
}

async function issue(account: string, name?: string): Promise<Issued> {
  const { code, stdout, stderr } = await keys(...issueArguments(account, name))
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout) as Issued
}

async function statusesOf(account: string): Promise<string[]> {
  const listed = JSON.parse((await keys('list', '--account', account, '--json')).stdout)
  return listed.keys.map((key: { status: string }) => key.status)
}

async function statusWith(key: string, secret: string): Promise<number> {
  const response = await fetch(`${service.apiUrl}/stats`, {
    headers: { authorization: `Bearer ${key}:${secret}` },
  })
  await response.arrayBuffer()
  return response.status
}
