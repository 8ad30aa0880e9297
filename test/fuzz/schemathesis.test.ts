/**
 * Checks with Schemathesis, an independent tool, that the service matches the OpenAPI document that it serves. The tool sends requests that
 * the document allows or forbids.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { operations } from '../../services/query/endpoints/all.ts'
import { downloads } from '../../services/query/endpoints/exports.ts'
import { pythonEnvironment } from '../clients/programs.ts'
import {
  makeDataDirectory,
  runCli,
  type ServiceProcess,
  startServiceProcess,
} from '../support/deployment/service-process.ts'
import { run } from '../support/runner/programs.ts'
import { needs, type Requirement } from '../support/runner/requirements.ts'

const python = pythonEnvironment('schemathesis', fileURLToPath(new URL('requirements.txt', import.meta.url)))
// It takes up to 70 s beside other suites. Only a hang takes this long.
const runMsMax = 400_000
const directory = makeDataDirectory()
const copies = makeDataDirectory()
const events = readFileSync(new URL('platform.ndjson', import.meta.url), 'utf8')
// Far more than the tool sends, so that responses depend on the requests and not on their number.
const settings = {
  PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '1000000',
  PLEDGEVIEW_FAILED_AUTH_PER_MINUTE_MAX: '1000000',
  PLEDGEVIEW_EXPORT_DIR: copies.path,
}
let requirement: Requirement
let service: ServiceProcess | undefined
let credentials: { key: string; secret: string }

async function command(args: readonly string[], stdin?: string): Promise<string> {
  const { code, stdout, stderr } = await runCli([...args, '--data-dir', directory.path, '--json'], stdin)
  expect(code, stderr).toBe(0)
  return stdout
}

beforeAll(async () => {
  requirement = await python.requirement()
  if (!requirement.isMet) return
  const running = await startServiceProcess(['--no-demo', '--data-dir', directory.path], settings)
  service = running
  await command(['events', 'append', '-'], events)
  const owner = [
    '--account',
    'fuzz',
    '--name',
    'Fuzz',
    '--url',
    'https://fuzz.example',
    '--email',
    'a@fuzz.example',
  ]
  credentials = JSON.parse(await command(['keys', 'issue', ...owner]))
  // The slug of the document's example.
  const detail = `${running.apiUrl}/projects/the-lighthouse-atlas`
  const headers = { authorization: `Bearer ${credentials.key}:${credentials.secret}` }
  await vi.waitFor(async () => expect((await fetch(detail, { headers })).status).toBe(200), {
    timeout: 100_000,
  })
  await command(['export', copies.path])
}, 360_000)
afterAll(async () => {
  await service?.stop('SIGKILL')
  directory.remove()
  copies.remove()
})
beforeEach(context => needs(context, requirement))

describe('schemathesis', () => {
  it('finds no response that the served document does not describe, and reaches every operation', async () => {
    const { apiUrl } = service ?? { apiUrl: '' }
    const { code, stdout, stderr } = await run(
      python.program('schemathesis'),
      [
        ...['run', new URL('/openapi.json', apiUrl).href, '--url', apiUrl],
        ...['--header', `Authorization: Bearer ${credentials.key}:${credentials.secret}`],
        ...['--seed', '20260301', '--max-examples', '15', '--continue-on-failure', '--no-color'],
      ],
      { cwd: directory.path, msMax: runMsMax },
    )
    const output = stdout + stderr
    expect(code, output).toBe(0)
    // A warning means that the tool could not test something: no credentials, no existing campaign, or only refusals.
    expect(output).not.toContain('WARNINGS')
    // With the preflight of each.
    expect(output).toContain(`Tested: ${2 * (operations.length + downloads.length)}\n`)
  }, 450_000)
})
