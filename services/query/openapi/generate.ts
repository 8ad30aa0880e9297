/**
 * Writes what the contract has of the schemas: the OpenAPI document (contracts/api/openapi.json) and the client's types of the bodies
 * (contracts/api/client/bodies.ts). With `--check` it only checks that they are up to date, and exits 1 if one of them is not.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { programVersion } from '../../runtime/program-version.ts'
import { clientTypesText, type Schema } from './client-types.ts'
import { buildOpenApi } from './openapi.ts'

const contract = new URL('../../../contracts/api/', import.meta.url)
const bodies = ['ProjectListBody', 'ProjectDetail', 'RemovalListBody', 'Stats']
const isCheck = process.argv.includes('--check')

function generate(name: string, text: string): void {
  const target = new URL(name, contract)
  const file = fileURLToPath(target)
  const isCurrent = existsSync(target) && readFileSync(target, 'utf8') === text
  if (!isCurrent && isCheck) {
    process.stderr.write(`${file} is out of date: run "npm run contracts" and commit the result\n`)
    process.exitCode = 1
    return
  }
  if (!isCurrent) writeFileSync(target, text)
  process.stdout.write(`${file} is up to date\n`)
}

const document = buildOpenApi({ version: programVersion })
generate('openapi.json', `${JSON.stringify(document, null, 2)}\n`)
generate(
  'client/bodies.ts',
  clientTypesText((document.components?.schemas ?? {}) as Record<string, Schema>, bodies),
)
