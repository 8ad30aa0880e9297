/** The OpenAPI document passes a linter that others use: Redocly's, from npm. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { makeDataDirectory } from '../support/deployment/service-process.ts'
import { needs, type Requirement } from '../support/runner/requirements.ts'
import { cacheFolder, fetched, outputOf, requirementOf } from './programs.ts'

// It has no dependencies, and runs no script at its installation.
const version = '2.77.0'
const folder = join(cacheFolder, `redocly-${version}`)
const program = join(folder, 'node_modules/@redocly/cli/bin/cli.js')
const configFile = path('openapi-linter/redocly.yaml')
const document = path('../../contracts/api/openapi.json')
const downloadMsMax = 300_000
let linter: Requirement

beforeAll(async () => {
  linter = await requirementOf('Redocly CLI', async () => {
    if (existsSync(program)) return
    await fetched('npm', ['install', '--prefix', folder, '--ignore-scripts', `@redocly/cli@${version}`])
  })
}, downloadMsMax)

beforeEach(context => needs(context, linter))

test('the document has no error', async () => {
  await expect(lint(document)).resolves.toEqual([])
})

test('a document with errors does not pass', async () => {
  const broken = JSON.parse(readFileSync(document, 'utf8'))
  broken.paths['/stats'].get.operationId = broken.paths['/projects'].get.operationId
  broken.components.schemas.Project.properties.creator = { $ref: '#/components/schemas/Nobody' }
  const directory = makeDataDirectory()
  try {
    const file = join(directory.path, 'openapi.json')
    writeFileSync(file, JSON.stringify(broken))
    const rules = await lint(file)
    expect(rules).toContain('operation-operationId-unique')
    expect(rules).toContain('no-unresolved-refs')
  } finally {
    directory.remove()
  }
})

/** The rules that the document breaks, whether as errors or as warnings. */
async function lint(file: string): Promise<string[]> {
  const output = await outputOf(
    process.execPath,
    [program, 'lint', file, '--config', configFile, '--format', 'json'],
    { environment: { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' } },
  ).catch((error: Error) => error.message)
  const { problems } = JSON.parse(output.slice(output.indexOf('{'), output.lastIndexOf('}') + 1))
  return problems.map(({ ruleId }: { ruleId: string }) => ruleId)
}

function path(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url))
}
