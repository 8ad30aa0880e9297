/** `npm run stack`, run as its users run it: what it prints, a part that is killed, and ports that are taken. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test, vi } from 'vitest'
import { freePort } from '../../services/runtime/free-port.ts'
import { localServices } from '../support/deployment/local-services.ts'
import { needs } from '../support/runner/requirements.ts'

const main = fileURLToPath(new URL('../support/stack/main.ts', import.meta.url))
const flags = ['api', 'api-2', 'portal', 'registry', 'clickhouse', 'kafka', 'redis', 'prometheus']
// Only a hang takes this long, also on a busy machine.
const startMsMax = 400_000
vi.setConfig({ testTimeout: 2 * startMsMax })
const running: ChildProcess[] = []

afterAll(async () => {
  for (const child of running.filter(({ exitCode }) => exitCode === null)) {
    child.kill('SIGINT')
    await once(child, 'exit')
  }
}, startMsMax)

function stack(args: readonly string[]) {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  running.push(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data: Buffer) => {
      output += data.toString()
    })
  const closed = once(child, 'close')
  return {
    child,
    output: () => output,
    ended: async () => {
      await closed
      return { code: child.exitCode, output }
    },
    async says(pattern: RegExp): Promise<RegExpExecArray> {
      const found = () => pattern.exec(output)
      await expect.poll(() => found() ?? child.exitCode, { timeout: startMsMax }).not.toBeNull()
      const match = found()
      if (!match) throw new Error(`it ended with ${child.exitCode}:\n${output}`)
      return match
    },
  }
}

/** A range of five free ports begins somewhere: each is looked at when the stack starts. */
async function freeArguments(): Promise<string[]> {
  const args: string[] = []
  for (const flag of flags) args.push(`--${flag}-port`, String(await freePort()))
  let first = await freePort()
  for (let next = await freePort(), length = 1; length < 5; next = await freePort(), length++)
    if (next !== first + length) [first, length] = [next, 0]
  return [...args, '--ops-port', String(first)]
}

test('a port that is taken is answered with the flag that changes it', async () => {
  const port = await freePort()
  const server = createServer().listen(port, '127.0.0.1')
  await once(server, 'listening')
  const { code, output } = await stack([...(await freeArguments()), '--redis-port', String(port)]).ended()
  server.close()
  expect({ code, output }).toEqual({
    code: 1,
    output: `port ${port} is taken (Redis): give another with --redis-port\n`,
  })
})

test('a killed projector and a killed Redis are reported, and run again; the API shows the demo platform', async context => {
  needs(context, await localServices({ withSchemaRegistry: true }))
  const { child, says, ended } = stack(await freeArguments())
  const [, curl = ''] = await says(/ (curl -s .*)\n/)
  const [, projector] = await says(/projector 1 +ops: \S+ \(process (\d+)\)/)
  const [, redis] = await says(/Redis +redis:\S+ \(process (\d+)\)/)
  await says(/Ctrl-C stops everything/)
  for (const pid of [projector, redis]) process.kill(Number(pid), 'SIGKILL')
  await says(/projector 1 ended: killed by SIGKILL\n {2}It is started again/)
  await says(/Redis ended: killed by SIGKILL\n/)
  await says(/projector 1 runs again: /)
  await says(/Redis runs again: /)
  const [, key = '', secret = '', url = ''] =
    /X-API-Key: (\S+)' .*X-API-Secret: (\S+)' '(\S+)'/.exec(curl) ?? []
  const ask = async () => {
    const response = await fetch(url, { headers: { 'X-API-Key': key, 'X-API-Secret': secret } })
    return ((await response.json()) as { data?: unknown[] }).data?.length
  }
  await expect.poll(ask, { timeout: startMsMax, interval: 500 }).toBe(3)
  child.kill('SIGINT')
  expect(await ended()).toMatchObject({ code: 0 })
})
