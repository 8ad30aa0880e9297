import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCommand } from '../../../services/commands/command.ts'
import { restoredCommand } from '../../../services/commands/restored.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pledgeview-restored-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

test('restored with a mistyped data directory fails, and makes no new platform there', async () => {
  const directory = join(folder, 'mistyped')
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const entry = { summary: '', load: async () => restoredCommand }
  const code = await runCommand({ restored: entry }, ['restored', '--data-dir', directory], {
    ...{ stdin, stdout, stderr },
  })
  expect({ code, said: String(stderr.read()) }).toEqual({
    code: 1,
    said: expect.stringContaining(`${directory} is no data directory yet`),
  })
  expect(existsSync(directory)).toBe(false)
})
