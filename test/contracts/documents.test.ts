/** The documents that are generated from the schemas are what their own tools accept. `npm run check` sees that they are up to date. */
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { npmPackages, outputOf, pythonEnvironment } from '../clients/programs.ts'
import { needs } from '../support/runner/requirements.ts'

const timeout = 420_000
const path = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const python = pythonEnvironment('datacontract', path('requirements.txt'))
const asyncApi = npmPackages('asyncapi', ['@asyncapi/parser@3.6.6', '@asyncapi/avro-schema-parser@3.1.0'])

test('the data contract of the views is one of the Open Data Contract Standard', {
  timeout,
}, async context => {
  needs(context, await python.requirement())
  const printed = await outputOf(python.program('datacontract'), [
    'lint',
    path('../../contracts/tables/odcs.json'),
  ])
  expect(printed).toContain('Data contract is valid')
})

test('the document of the events is AsyncAPI, and so are its Avro schemas', { timeout }, async context => {
  needs(context, await asyncApi.requirement())
  const program = `
    const { Parser } = require('@asyncapi/parser'), { AvroSchemaParser } = require('@asyncapi/avro-schema-parser')
    const parser = new Parser()
    parser.registerSchemaParser(AvroSchemaParser())
    const text = require('node:fs').readFileSync(process.argv[1], 'utf8')
    parser.parse(text).then(({ document, diagnostics }) =>
      console.log(JSON.stringify({
        messages: document?.messages().all().map(one => one.id()),
        diagnostics: diagnostics.map(({ code }) => code),
      })))`
  const printed = await outputOf(
    process.execPath,
    ['-e', program, path('../../contracts/events/asyncapi.json')],
    { cwd: asyncApi.folder },
  )
  expect(JSON.parse(printed)).toEqual({
    messages: ['campaign', 'pledge', 'api-key'],
    // With the latest version, generators that do not know it make empty models.
    diagnostics: ['asyncapi-latest-version'],
  })
})
