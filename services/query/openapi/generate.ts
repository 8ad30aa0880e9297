/**
 * Writes what the contracts have of the schemas: the OpenAPI document (contracts/api/openapi.json), the client's types of the bodies
 * (contracts/api/client/bodies.ts, and in pledgeview.py those of the client in Python), the data contract of the views
 * (contracts/tables/odcs.json), the AsyncAPI document of the events (contracts/events/asyncapi.json) and an example of each event's present
 * schema (contracts/events/golden). With `--check` it only checks that they are up to date, and exits 1 if one of them is not.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { asyncApi } from '../../../contracts/events/async-api.ts'
import { eventTypes } from '../../../contracts/events/event.ts'
import { withPresentSchema } from '../../../contracts/events/golden/examples.ts'
import { programVersion } from '../../runtime/program-version.ts'
import { dataContract } from '../../tables/schema/data-contract.ts'
import { readPublicViews } from '../../tables/schema/public-views.ts'
import { clientTypesText, pythonTypesText, type Schema } from './client-types.ts'
import { buildOpenApi } from './openapi.ts'

const contracts = new URL('../../../contracts/', import.meta.url)
const bodies = ['ProjectListBody', 'ProjectDetail', 'RemovalListBody', 'Stats']
const isCheck = process.argv.includes('--check')

function generate(name: string, text: string): void {
  const target = new URL(name, contracts)
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

const json = (document: object) => `${JSON.stringify(document, null, 2)}\n`

const document = buildOpenApi(programVersion)
generate('api/openapi.json', json(document))
const schemas = (document.components?.schemas ?? {}) as Record<string, Schema>
generate('api/client/bodies.ts', clientTypesText(schemas, bodies))
const python = 'api/client-python/pledgeview.py'
generate(
  python,
  readFileSync(new URL(python, contracts), 'utf8').replace(
    /(?<=^# The bodies of the API.*\n)[\s\S]*(?=^# The end of the bodies)/m,
    () => `\n\n${pythonTypesText(schemas, bodies)}\n\n`,
  ),
)
generate('tables/odcs.json', json(dataContract(readPublicViews(), programVersion)))
generate('events/asyncapi.json', json(asyncApi(programVersion)))
for (const type of eventTypes) {
  const golden = `events/golden/${type}.json`
  generate(
    golden,
    json(withPresentSchema(type, JSON.parse(readFileSync(new URL(golden, contracts), 'utf8')))),
  )
}
