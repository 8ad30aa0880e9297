/** `npm start` as a stranger meets it: the demo platform, the printed curl lines, stopping, killing and going on. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { formatEvent } from '../../contracts/events/ndjson.ts'
import { canRefuseCalls } from '../../services/clickhouse-server/outgoing.ts'
import { recordsTable } from '../../services/log/local/file.ts'
import {
  freePorts,
  launchProcess,
  makeDataDirectory,
  runCli,
  type ServiceProcess,
  startServiceProcess,
} from '../support/deployment/service-process.ts'
import type { StatusOutput } from '../support/deployment/status.ts'
import type { ProjectionStatus } from '../support/events/kickstarter.ts'
import { issueCredentials } from '../support/events/kickstarter.ts'
import { apiKeyEvent } from '../support/events/sample-events.ts'
import { pathsIn } from '../support/runner/paths-in.ts'
import { processesWith, procFileSystem } from '../support/runner/processes.ts'
import { run } from '../support/runner/programs.ts'
import { needs, shellWithCurl } from '../support/runner/requirements.ts'

const directory = makeDataDirectory()
// As an operator may have created it.
chmodSync(directory.path, 0o755)
let service: ServiceProcess | undefined
const analysts = { PLEDGEVIEW_SQL_PASSWORD: 'of the data teams: <&> wörd' }
// Only a hang takes this long, also on a busy machine.
const soon = { timeout: 60_000, interval: 50 }

interface Stats {
  projects_total: number
  total_pledges: number
}

describe('npm start', () => {
  afterAll(async () => {
    await service?.stop('SIGKILL')
    directory.remove()
  })

  test('killed while it loads the demo, it loads all of it at the next start', async () => {
    const first = await startServiceProcess(['--data-dir', directory.path], {}, 'Loading the demo platform')
    first.child.kill('SIGKILL')
    await once(first.child, 'exit')
    service = await startServiceProcess(['--data-dir', directory.path], analysts)
    await vi.waitFor(() => expect(service?.output()).toContain('Ctrl-C stops'), soon)
    // The API looks for new keys twice a second.
    const stats = await vi.waitFor(() => dataOf<Stats>('stats'), soon)
    expect(stats.projects_total).toBeGreaterThan(300)
    expect(stats.total_pledges).toBeGreaterThan(10_000)
  })

  test('the printed curl lines answer, and no campaign that is not public is among the answers', async () => {
    const { data } = await curl<{ data: { status: string }[] }>('projects')
    expect(data.length).toBeGreaterThan(0)
    expect(new Set(data.map(project => project.status))).toEqual(new Set(['LIVE']))
  })

  test('the printed SQL line answers, although analysts have a password', async context => {
    needs(context, shellWithCurl)
    const line = /curl .*GROUP BY status'/.exec(service?.output() ?? '')?.[0] ?? ''
    const { stdout } = await run('sh', ['-c', line], { environment: analysts, msMax: soon.timeout })
    expect(stdout).toMatch(/^LIVE\t\d+$/m)
  })

  test('it warns if and only if the system cannot keep analysts from making ClickHouse connect elsewhere', () => {
    expect(service?.output().includes('no Landlock rules')).toBe(!canRefuseCalls())
  })

  test("ClickHouse's log is not filled with one warning, so an operator finds an error in it", () => {
    const log = readFileSync(join(directory.path, 'clickhouse', 'clickhouse.log'), 'utf8')
    expect(log.match(/<Warning>/g)?.length ?? 0).toBeLessThan(50)
  })

  test('the numbers move while it runs', async () => {
    const moved = async () => (await status()).projector.records
    const before = await moved()
    await vi.waitFor(async () => expect(await moved()).toBeGreaterThan(before), soon)
  })

  test('interrupted with half a request open, it ends in time with exit code 0, and the next start goes on', async () => {
    const before = await status()
    const { hostname, port } = new URL(service?.apiUrl ?? '')
    const stalled = connect(Number(port), hostname)
    stalled.on('error', () => {})
    await once(stalled, 'connect')
    stalled.write('GET /api/v1/stats HTTP/1.1\r\n')
    let answer = ''
    stalled.on('data', data => {
      answer += data
    })
    const isCut = new Promise(resolve => stalled.on('close', resolve))
    // After 15 s it would give up, with exit code 1.
    expect(await service?.stop('SIGINT')).toBe(0)
    await isCut
    // It did not wait until the server gives up half a request by itself, with an answer.
    expect(answer).toBe('')
    service = await startServiceProcess(['--data-dir', directory.path])
    const after = await status()
    expect(after.tables.public_campaigns).toBeGreaterThanOrEqual(before.tables.public_campaigns - 5)
    for (const [index, lag] of after.projector.lag.entries()) {
      expect(lag.committed).toBeGreaterThanOrEqual(before.projector.lag[index]?.committed ?? 0)
    }
    expect(service.output()).not.toContain('Loading the demo')
  })

  test('pledgeview status says beside it that ClickHouse does not answer', async context => {
    needs(context, procFileSystem)
    await service?.stop()
    service = await startServiceProcess(['--data-dir', directory.path], {
      PLEDGEVIEW_CLICKHOUSE_SILENCE_MS_MAX: '3000',
    })
    const server = processesWith(join(directory.path, 'clickhouse', 'config.xml'))
    expect(server.length).toBeGreaterThan(0)
    for (const pid of server) killIfThere(pid, 'SIGSTOP')
    try {
      const { code, stdout } = await runCli(['status', '--data-dir', directory.path])
      expect([code, stdout]).toEqual([1, expect.stringMatching(/^clickhouse +does not answer: /m)])
    } finally {
      for (const pid of server) killIfThere(pid, 'SIGCONT')
    }
  })

  test('a key that is issued while no service runs opens the API at the next start, and its secret is nowhere in the list', async () => {
    await service?.stop()
    const owner = ['--name', 'n', '--url', 'https://example.com', '--email', 'a@example.com']
    const issued = await keys('issue', '--account', 'offline', ...owner, '--json')
    const { key, secret } = JSON.parse(issued.stdout)
    service = await startServiceProcess(['--data-dir', directory.path])
    const headers = { authorization: `Bearer ${key}:${secret}` }
    await expect.poll(async () => (await fetch(`${service?.apiUrl}/stats`, { headers })).status).toBe(200)
    const listed = await keys('list', '--account', 'offline', '--json')
    expect(listed.stdout).not.toContain(secret)
    expect(JSON.parse(listed.stdout)).toMatchObject({
      keys: [{ key_prefix: key.slice(0, 16), status: 'active' }],
    })
  })

  test('keys issue that is interrupted while its key is not active yet ends when it is, with its secret', async () => {
    const journal = new DatabaseSync(join(directory.path, 'journal.sqlite'), { timeout: 15_000 })
    const appended = () => journal.prepare(`SELECT count() AS n FROM ${recordsTable['api-keys']}`).get()?.n
    const before = Number(appended())
    // Stopped within an append of its own, the service would keep the lock.
    journal.exec('BEGIN IMMEDIATE')
    service?.child.kill('SIGSTOP')
    journal.exec('ROLLBACK')
    try {
      const owner = ['--name', 'n', '--url', 'https://example.com', '--email', 'a@example.com']
      const args = ['keys', 'issue', '--account', 'interrupted', ...owner, '--data-dir', directory.path]
      const { child, output, started } = launchProcess(args, {}, 'It ends once the key is active or deleted')
      await expect.poll(appended).toBe(before + 1)
      child.kill('SIGINT')
      await started
      service?.child.kill('SIGCONT')
      await once(child, 'close')
      expect([child.exitCode, output()]).toEqual([0, expect.stringContaining('pv_secret_')])
    } finally {
      service?.child.kill('SIGCONT')
      journal.close()
    }
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
    const integration = { name, url: 'https://example.com', contact_email: 'a@example.com' }
    const line = formatEvent(apiKeyEvent({ key, account_id: 'hostile', integration }))
    await runCli(['events', 'append', '-', '--data-dir', directory.path], `${line}\n`)
    const shown = 'Mirror\\u{1b}[2J\\u{9b}1A\\u{202e}'
    const listed = async () => (await keys('list', '--account', 'hostile')).stdout
    await expect.poll(listed).toContain(`${shown}\n`)
    expect((await keys('revoke', key.slice(0, 16))).stdout).toContain(`(${shown})`)
    expect((await keys('revoke', key)).stderr).toContain('revoked already')
  })

  test('no other user can read anything in the data directory, even if it was created for all', () => {
    const inside = pathsIn(directory.path).map(({ path }) => path)
    expect(inside.length).toBeGreaterThan(100)
    const isOpen = (path: string) => (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077
    expect([directory.path, ...inside].filter(isOpen)).toEqual([])
  })

  test('a second service on the same directory is refused, and says why', async () => {
    const second = await runCli(['start', ...freePorts, '--data-dir', directory.path])
    const wayOn = 'in use by another process: run this again when that has ended, or interrupt it'
    expect(second).toMatchObject({ code: 1, stderr: expect.stringContaining(wayOn) })
  })

  // One that the program takes itself, and one that ClickHouse's server takes.
  test.each(['port', 'sql-port'])(
    'a --%s that is taken is named, with the flag that changes it',
    async name => {
      const other = makeDataDirectory()
      const { port } = new URL(service?.apiUrl ?? '')
      const args = [...freePorts, `--${name}`, port, '--no-demo', '--data-dir', other.path]
      const second = await runCli(['start', ...args])
      other.remove()
      const stderr = expect.stringContaining(`port ${port} is taken: give another with --${name}\n`)
      expect(second).toMatchObject({ code: 1, stderr })
    },
  )
})

test('on tables that were put back from a copy, it accepts no key that was revoked since, also after a start that was interrupted', async () => {
  const own = makeDataDirectory()
  const data = join(own.path, 'data')
  const pledgeview = (args: readonly string[], stdin = '') => runCli([...args, '--data-dir', data], stdin)
  expect((await pledgeview(['events', 'append', '-'])).code).toBe(0)
  const revoked = await issueCredentials(pledgeview, 'a')
  cpSync(join(data, 'tables'), join(own.path, 'copy'), { recursive: true })
  const others = Array.from({ length: 60 }, (_, n) =>
    apiKeyEvent({ key: `pv_live_${n}`, account_id: `${n}` }),
  )
  const revocation = { type: 'api-key', key: revoked['X-API-Key'] ?? '', data: null } as const
  const lines = [...others, revocation].map(event => `${formatEvent(event)}\n`)
  expect((await pledgeview(['events', 'append', '-'], lines.join(''))).code).toBe(0)
  // It waits until everything before is folded.
  await issueCredentials(pledgeview, 'b')
  rmSync(join(data, 'tables'), { recursive: true })
  renameSync(join(own.path, 'copy'), join(data, 'tables'))
  // A batch for each event: the last one is late.
  const slowly = { PLEDGEVIEW_BATCH_RECORDS_MAX: '1' }
  const args = ['--no-demo', '--data-dir', data]
  const interrupted = await startServiceProcess(args, slowly, 'the API opens when')
  const { ops_url } = JSON.parse(readFileSync(join(data, 'service.json'), 'utf8')) as { ops_url: string }
  expect((await fetch(`${ops_url}/readyz`)).status).toBe(503)
  expect((await fetch(`${ops_url}/healthz`)).status).toBe(200)
  expect(await interrupted.stop()).toBe(0)
  expect(interrupted.output()).toContain('the tables went back')
  expect(interrupted.output()).not.toContain('serves')
  const started = await startServiceProcess(args, slowly)
  try {
    expect((await fetch(`${started.apiUrl}/projects`, { headers: revoked })).status).toBe(401)
  } finally {
    await started.stop()
    own.remove()
  }
})

test('it runs from a folder whose path has a space and an umlaut, beside settings of Kafka and a proxy, and so does the line for a key', async () => {
  const folder = makeDataDirectory()
  const checkout = join(folder.path, 'Meine Läden')
  const root = new URL('../../', import.meta.url)
  for (const part of ['services', 'contracts', 'package.json', 'CHANGELOG.md'])
    cpSync(new URL(part, root), join(checkout, part), { recursive: true })
  symlinkSync(new URL('node_modules', root), join(checkout, 'node_modules'))
  const cli = join(checkout, 'services', 'cli.ts')
  // As a user has it: the program chooses the place of its cache. A proxy would get the password of ClickHouse.
  const proxy = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: 'http://127.0.0.1:1' }
  const environment = { NODE_COMPILE_CACHE: '', PLEDGEVIEW_KAFKA_BROKERS: '127.0.0.1:1', ...proxy }
  const launch = (...flags: string[]) =>
    launchProcess(
      ['start', ...freePorts, ...flags, '--data-dir', join(checkout, '.pledgeview')],
      ...[environment, undefined, cli],
    )
  const { started, output, stop } = launch('--no-demo')
  try {
    const { opsUrl } = await started
    await expect.poll(async () => (await fetch(`${opsUrl}/readyz`)).status, soon).toBe(200)
    expect(readdirSync(folder.path)).toEqual(['Meine Läden'])
    await vi.waitFor(() => expect(output()).toContain('For a key: '), soon)
    const pasted = /For a key: npm run --silent pledgeview -- (.*)/.exec(output())?.[1]
    const env = { ...process.env, ...environment }
    const issued = await promisify(execFile)('sh', ['-c', `"$0" "$1" ${pasted}`, process.execPath, cli], {
      env,
    })
    expect(issued.stdout).toContain('pv_secret_')
    await stop()
    const unkind = launch('--unkind')
    await vi.waitFor(
      () => expect(unkind.output()).toContain('--unkind needs the demo, and this data directory has none'),
      soon,
    )
    await unkind.stop()
  } finally {
    await stop()
    folder.remove()
  }
})

test('it ends with exit code 1 and says why if ClickHouse cannot be started again', async context => {
  needs(context, procFileSystem)
  const own = makeDataDirectory()
  const started = await startServiceProcess(['--no-demo', '--data-dir', own.path], {
    PLEDGEVIEW_RETRY_MS_MAX: '3000',
  })
  const { clickhouse } = JSON.parse(readFileSync(join(own.path, 'service.json'), 'utf8'))
  const { port, hostname } = new URL(clickhouse.url)
  const taker = createServer(socket => socket.destroy())
  const closed = once(started.child, 'close')
  try {
    // Until its port is taken before its next process takes it.
    for (const until = Date.now() + soon.timeout; !taker.listening && Date.now() < until; ) {
      for (const pid of processesWith(join(own.path, 'clickhouse', 'config.xml'))) killIfThere(pid)
      taker.listen(Number(port), hostname)
      await Promise.race([once(taker, 'listening'), once(taker, 'error')]).catch(() => {})
    }
    expect(taker.listening).toBe(true)
    await closed
    expect([started.child.exitCode, started.output()]).toEqual([
      1,
      expect.stringContaining(`port ${port} is taken`),
    ])
  } finally {
    taker.close()
    await started.stop('SIGKILL')
    own.remove()
  }
})

function killIfThere(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has just ended.
  }
}

function keys(...args: string[]) {
  return runCli(['keys', ...args, '--data-dir', directory.path])
}

async function status(): Promise<ProjectionStatus & StatusOutput> {
  return (await (await fetch(`${service?.opsUrl}/status`)).json()) as ProjectionStatus & StatusOutput
}

/** Runs the printed curl line of that resource, read as its words. */
async function curl<T>(resource: string): Promise<T> {
  const line =
    service
      ?.output()
      .split('\n')
      .find(text => text.includes('curl') && text.includes(`/${resource}`)) ?? ''
  const words = [...line.matchAll(/'([^']*)'/g)].map(([, word = '']) => word)
  const url = words.pop() ?? ''
  const headers = Object.fromEntries(words.map(word => word.split(': ') as [string, string]))
  const response = await fetch(url, { headers })
  expect(response.status).toBe(200)
  return (await response.json()) as T
}

async function dataOf<T>(resource: string): Promise<T> {
  return (await curl<{ data: T }>(resource)).data
}
