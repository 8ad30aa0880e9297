/** How commands end. The first tests run a small service in a process of its own. */
import { type ChildProcess, type StdioOptions, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const place = (path: string) => new URL(`../../../services/${path}`, import.meta.url).href

interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  log: string
}

/** Runs it until it says `runs` on stdout, and then does that to it. `work` has the `signal`, and a promise `aborted`. */
async function endOf(work: string, act: (child: ChildProcess) => unknown): Promise<Ended> {
  const script = `
    import { createLogger } from '${place('runtime/ops/logger.ts')}'
    import { untilInterrupted } from '${place('commands/services.ts')}'
    process.exitCode = await untilInterrupted('test', createLogger('info'), async signal => {
      const aborted = new Promise(resolve => signal.addEventListener('abort', resolve))
      process.stdout.write('runs')
      ${work}
    })`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script])
  const log = text(child.stderr)
  await once(child.stdout, 'data')
  act(child)
  const [code, signal] = await once(child, 'exit')
  return { code, signal, log: await log }
}

const waits = 'const timer = setInterval(() => {}, 1_000); await aborted; clearInterval(timer)'
const terminate = (child: ChildProcess) => child.kill('SIGTERM')

test('interrupted, it ends with exit code 0 when its work has ended', async () => {
  const { code, log } = await endOf(`${waits}; process.stderr.write('closed')`, terminate)
  expect([code, log]).toEqual([0, 'closed'])
})

test('what fails while it closes is logged, and the exit code is 1', async () => {
  const { code, log } = await endOf(`${waits}; throw new Error('not written')`, terminate)
  expect(code).toBe(1)
  expect(log).toContain('"error":"not written"')
})

test('it does not end with exit code 0 if its work can never end', async () => {
  expect((await endOf('await aborted', () => {})).code).toBe(13)
})

test('a fault in native code ends it', async () => {
  expect(await endOf(waits, child => child.kill('SIGSEGV'))).toMatchObject({ signal: 'SIGSEGV' })
})

test('it goes on if nobody reads what it prints', async () => {
  const prints = `await new Promise(resolve => process.stdin.once('data', resolve)); process.stdin.destroy()
    process.stdout.write('text', () => process.stderr.write('goes on')); ${waits}`
  const { code, log } = await endOf(prints, child => {
    child.stdout?.destroy()
    child.stdin?.write('now')
    child.stderr?.once('data', () => terminate(child))
  })
  expect([code, log]).toEqual([0, 'goes on'])
})

const cli = fileURLToPath(place('cli.ts'))

test('a command whose reader stops ends with the exit code of one that SIGPIPE ends, and says nothing', async () => {
  const child = spawn(process.execPath, [cli, 'help'])
  child.stdout.destroy()
  const log = text(child.stderr)
  expect(await once(child, 'exit')).toEqual([141, null])
  expect(await log).toBe('')
})

test('a command whose output cannot be written says so in one line, with exit code 1', async () => {
  const stdio: StdioOptions = ['ignore', openSync('/dev/full', 'w'), 'pipe']
  const { status, stderr } = spawnSync(process.execPath, [cli, 'help'], { stdio, encoding: 'utf8' })
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^pledgeview: the output .*ENOSPC.*\n$/)])
})

test('a command ends as usual if what it tells cannot be written', async () => {
  const child = spawn(process.execPath, [cli, 'none'], {
    stdio: ['ignore', 'ignore', openSync('/dev/full', 'w')],
  })
  expect(await once(child, 'exit')).toEqual([2, null])
})
