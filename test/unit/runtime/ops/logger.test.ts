/** The log of a process, written by a process of its own: what the end of it writes can be seen only afterwards. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const logger = new URL('../../../../services/runtime/ops/logger.ts', import.meta.url)

function run(dest: string, script: string): { status: number | null; stdout: string } {
  const text = `import { createLogger } from '${logger}'\nconst logger = createLogger('info', '${dest}')\n${script}`
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', text], {
    ...{ encoding: 'utf8', timeout: 60_000, killSignal: 'SIGKILL' },
  })
  return { status, stdout }
}

test('has every line once, also those right before the end', () => {
  const directory = mkdtempSync(join(tmpdir(), 'pledgeview-log-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const file = join(directory, 'log')
  const script = `for (let line = 0; line < 5000; line++) {
    logger.info({ line }, 'größer')
    if (line % 500 === 0) await new Promise(setImmediate)
  }
  process.exit(3)`
  expect(run(file, script).status).toBe(3)
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  // A group that is being written when the process ends may come after the last ones.
  const numbers = lines.map(text => JSON.parse(text).line as number).toSorted((a, b) => a - b)
  expect(numbers).toEqual(Array.from({ length: 5_000 }, (_, line) => line))
})

test('does not stop or hold up its process if its disk is full', () => {
  const script = `logger.info('first')
  setTimeout(() => {
    logger.fatal('second')
    console.log('runs')
  }, 600)`
  expect(run('/dev/full', script)).toEqual({ status: 0, stdout: 'runs\n' })
})
