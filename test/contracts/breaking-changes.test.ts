/**
 * The API's contract keeps the promise of its version: under one path nothing is removed or renamed. The present document is
 * compared with the last released one, contracts/api/released/v1.json. A release copies the present document there.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { needs, type Requirement } from '../support/runner/requirements.ts'
import { type BreakingChange, breakingChanges, oasdiffRequirement } from './oasdiff.ts'

const buildMsMax = 360_000
const present = fileURLToPath(new URL('../../contracts/api/openapi.json', import.meta.url))
const released = fileURLToPath(new URL('../../contracts/api/released/v1.json', import.meta.url))
const text = readFileSync(present, 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'pledgeview-oasdiff-'))
let requirement: Requirement

beforeAll(async () => {
  requirement = await oasdiffRequirement()
}, buildMsMax)
afterAll(() => rmSync(folder, { recursive: true, force: true }))
beforeEach(context => needs(context, requirement))

describe('the contract of the API', () => {
  it('breaks nothing of the released one', async () => {
    expect(await breakingChanges(released, present)).toEqual([])
  })

  // The tool does not compare these.
  it('has the paths and the ways to authenticate of the released one', () => {
    const before = JSON.parse(readFileSync(released, 'utf8'))
    const now = JSON.parse(text)
    expect(now.servers[0].url).toBe(before.servers[0].url)
    expect(now.security).toEqual(expect.arrayContaining(before.security))
    const schemes = (of: typeof now) =>
      Object.values<Record<string, string>>(of.components.securitySchemes).map(
        ({ type, in: place, name, scheme }) => ({ type, place, name, scheme }),
      )
    expect(schemes(now)).toEqual(expect.arrayContaining(schemes(before)))
  })
})

// biome-ignore lint/suspicious/noExplicitAny: the changes below reach into every part of the document.
type Document = any

const project = (document: Document) => document.components.schemas.Project
const parametersOf = (document: Document) => document.paths['/projects'].get.parameters as { name: string }[]
const parameter = (document: Document, name: string): Document =>
  parametersOf(document).find(given => given.name === name)
const drop = <T>(list: T[], value: T) => void list.splice(list.indexOf(value), 1)

describe('the comparison', () => {
  it.each<[string, (document: Document) => void]>([
    [
      'a removed property',
      document => {
        delete project(document).properties.updated_at
        drop(project(document).required, 'updated_at')
      },
    ],
    [
      'a renamed property',
      document => {
        const { properties, required } = project(document)
        properties.name = properties.title
        delete properties.title
        required[required.indexOf('title')] = 'name'
      },
    ],
    ['a property that may be absent', document => drop(project(document).required, 'title')],
    [
      'a property that may be null',
      document => {
        project(document).properties.title.type = ['string', 'null']
      },
    ],
    [
      'a property of another type',
      document => {
        document.components.schemas.Stats.properties.total_raised.type = 'string'
      },
    ],
    ['another status', document => project(document).properties.status.enum.push('PAUSED')],
    [
      'another error code',
      document => document.components.schemas.ErrorBody.properties.error.properties.code.enum.push('gone'),
    ],
    ['a removed parameter', document => drop(parametersOf(document), parameter(document, 'status'))],
    ['a removed order', document => drop(parameter(document, 'sort').schema.enum, 'most_backed')],
    [
      'smaller pages',
      document => {
        parameter(document, 'limit').schema.maximum = 50
      },
    ],
    [
      'another default',
      document => {
        parameter(document, 'limit').schema.default = 20
      },
    ],
    ['a removed path', document => delete document.paths['/stats']],
    [
      'a removed header',
      document => delete document.paths['/projects'].get.responses['200'].headers['X-Data-As-Of'],
    ],
  ])('finds %s', async (_, change) => {
    expect(await changesAfter(change)).not.toEqual([])
  })

  it.each<[string, (document: Document) => void]>([
    ['nothing at all', () => {}],
    [
      'a new property',
      document => {
        project(document).properties.video_url = { type: 'string' }
        project(document).required.push('video_url')
      },
    ],
    [
      'a new parameter',
      document => {
        parametersOf(document).push({ ...parameter(document, 'category'), name: 'location' })
      },
    ],
    [
      'another description',
      document => {
        project(document).properties.title.description = 'Something else.'
      },
    ],
  ])('allows %s', async (_, change) => {
    expect(await changesAfter(change)).toEqual([])
  })
})

async function changesAfter(change: (document: Document) => void): Promise<BreakingChange[]> {
  const document = JSON.parse(text)
  change(document)
  const file = join(folder, 'changed.json')
  writeFileSync(file, JSON.stringify(document))
  return breakingChanges(present, file)
}
