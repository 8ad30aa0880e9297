/** Every sample of the guide does what it says, against a real service over real tables, as readers copy it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { packageName, packClient } from '../../../../contracts/api/client-package/pack.ts'
import { errorBody } from '../../../../contracts/api/errors.ts'
import {
  type SampleName,
  sampleLanguages,
  sampleText,
} from '../../../../services/portal/guide/samples/samples.ts'
import { outputOf, path, pythonEnvironment } from '../../../clients/programs.ts'
import { makeDataDirectory } from '../../../support/deployment/service-process.ts'
import { useQueryService } from '../../../support/query/service.ts'
import { campaignRow } from '../../../support/query/tables.ts'
import { requirementOf, run } from '../../../support/runner/programs.ts'
import { needs, shellWithCurl } from '../../../support/runner/requirements.ts'

const ids = Array.from({ length: 130 }, (_, n) => `c${String(n).padStart(3, '0')}`)
const python = pythonEnvironment('samples', path('python-api/httpx.txt'))
const client = makeDataDirectory()
// The samples in TypeScript need the package.
const unpacked = await requirementOf('tar', async () => {
  await outputOf('tar', ['-xzf', packClient(client.path), '-C', client.path])
})
const languages = [
  { extension: 'sh', program: 'sh', requirement: shellWithCurl },
  { extension: 'ts', program: process.execPath, requirement: unpacked },
  { extension: 'py', program: python.program('python'), requirement: await python.requirement() },
] as const

const service = useQueryService()
const running: ChildProcess[] = []
let work: ReturnType<typeof makeDataDirectory>

beforeEach(async () => {
  await service.store().putCampaigns(ids.map(id => campaignRow(id)))
  await service.store().advanceWatermark()
})
afterAll(() => client.remove())
beforeEach(() => {
  work = makeDataDirectory()
})
afterEach(async () => {
  for (const child of running.splice(0)) {
    if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit')
  }
  work.remove()
})

for (const { extension, program, requirement } of languages) {
  test(`first-call.${extension} shows three campaigns`, async context => {
    needs(context, requirement)
    const printed = await outputOf(program, [write('first-call', extension)], options())
    expect(printed.match(/Title of c\d{3}/g)).toHaveLength(3)
    expect(printed).toContain('130')
  })

  test(`first-call.${extension} shows what the API says of a wrong key, and nothing else`, async context => {
    needs(context, requirement)
    const { cwd, environment } = options({ PLEDGEVIEW_SECRET: 'wrong' })
    const { stdout, stderr } = await run(program, [write('first-call', extension)], { cwd, environment })
    expect(stdout + stderr).toContain(errorBody('unauthorized').error.message.slice(0, 30))
    expect(stdout + stderr).not.toMatch(/Traceback|^ +at /m)
  })

  if (!sampleLanguages('mirroring').some(one => one.extension === extension)) continue

  test(`mirroring.${extension} has every campaign, and after a second start what has changed and left since`, async context => {
    needs(context, requirement)
    const file = write('mirroring', extension)
    await runOnce(program, file)
    expect(copied()).toEqual(new Map(ids.map(id => [id, `Title of ${id}`])))
    const now = new Date().toISOString().replace('T', ' ').replace('Z', '')
    await service
      .store()
      .putCampaigns([
        campaignRow('c007', { title: 'Changed', updated_at: now }),
        campaignRow('c008', { is_deleted: 1, updated_at: now, ...{ was_public: 1 } }),
      ])
    await runOnce(program, file)
    const expected = new Map(ids.map(id => [id, id === 'c007' ? 'Changed' : `Title of ${id}`]))
    expected.delete('c008')
    expect(copied()).toEqual(expected)
  })
}

/** Runs a mirror until it has saved a whole walk. */
async function runOnce(program: string, file: string): Promise<void> {
  const child = spawn(program, [file], { ...options(), stdio: ['ignore', 'pipe', 'pipe'] })
  running.push(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (output += chunk))
  await expect.poll(() => output, { timeout: 90_000 }).toMatch(/, as of 2\d{3}-/)
  child.kill('SIGTERM')
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

/** Titles by id, as the program's copy has them. */
function copied(): Map<string, string> {
  const sqlite = join(work.path, 'campaigns.sqlite')
  const campaigns: { id: string; title: string }[] = existsSync(sqlite)
    ? rowsOf(sqlite)
    : JSON.parse(readFileSync(join(work.path, 'campaigns.json'), 'utf8')).campaigns
  return new Map(campaigns.map(({ id, title }) => [id, title]))
}

function rowsOf(file: string): { id: string; title: string }[] {
  const copy = new DatabaseSync(file)
  try {
    return copy
      .prepare('SELECT body FROM campaigns')
      .all()
      .map(({ body }) => JSON.parse(String(body)))
  } finally {
    copy.close()
  }
}

function write(name: SampleName, extension: string): string {
  // A package is found from where the file is.
  const folder = join(work.path, 'node_modules', packageName)
  mkdirSync(dirname(folder), { recursive: true })
  if (!existsSync(folder)) cpSync(join(client.path, 'package'), folder, { recursive: true })
  const file = join(work.path, `${name}.${extension === 'ts' ? 'mts' : extension}`)
  writeFileSync(file, sampleText(name, extension, `http://127.0.0.1:${service.app().port}/api/v1`))
  return file
}

function options(changes: Record<string, string> = {}) {
  const { key, secret } = service.app().issue()
  const modules = path('../../contracts/api/client-python')
  const python = { PYTHONPATH: modules, PYTHONDONTWRITEBYTECODE: '1' }
  const environment = { PLEDGEVIEW_KEY: key, PLEDGEVIEW_SECRET: secret, ...python, ...changes }
  return { cwd: work.path, environment, env: { ...process.env, ...environment } }
}
