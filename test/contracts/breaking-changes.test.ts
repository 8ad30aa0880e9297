/**
 * The API's contract keeps the promise of its version: under one path nothing is removed or renamed. The present document is
 * compared with the last released one, contracts/api/released/v1.json. A release copies the present one there.
 *
 * oasdiff compares them, an independent tool that knows which differences break a client. It is built from the Go module proxy.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  cacheFolder,
  fetched,
  outputOf,
  quickBuild,
  requirementOf,
  withoutC,
} from '../support/runner/programs.ts'
import { needs, type Requirement } from '../support/runner/requirements.ts'

const version = 'v1.18.3'
const toolFolder = join(cacheFolder, `oasdiff-${version}`)
const program = join(toolFolder, 'oasdiff')
const buildMsMax = 360_000
const present = fileURLToPath(new URL('../../contracts/api/openapi.json', import.meta.url))
const released = fileURLToPath(new URL('../../contracts/api/released/v1.json', import.meta.url))
const text = readFileSync(present, 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'pledgeview-oasdiff-'))
let requirement: Requirement

beforeAll(async () => {
  requirement = await requirementOf(`oasdiff ${version}`, async () => {
    // Go renames the finished program, so one that is there is whole.
    if (existsSync(program)) return
    await fetched('go', ['install', ...quickBuild, `github.com/oasdiff/oasdiff@${version}`], {
      environment: { ...withoutC, GOBIN: toolFolder },
    })
  })
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

describe('the comparison', () => {
  it.each<[string, (document: Document) => void]>([
    [
      'a renamed property',
      document => {
        const { properties, required } = project(document)
        properties.name = properties.title
        delete properties.title
        required[required.indexOf('title')] = 'name'
      },
    ],
    // The tool only warns of these.
    ['another status', document => project(document).properties.status.enum.push('PAUSED')],
    [
      'a removed header',
      document => delete document.paths['/projects'].get.responses['200'].headers['X-Data-As-Of'],
    ],
  ])('finds %s', async (_, change) => {
    expect(await changesAfter(change)).not.toEqual([])
  })
})

function changesAfter(change: (document: Document) => void): Promise<object[]> {
  const document = JSON.parse(text)
  change(document)
  const file = join(folder, 'changed.json')
  writeFileSync(file, JSON.stringify(document))
  return breakingChanges(present, file)
}

/**
 * What a client of the released document cannot rely on any more in the present one. What the tool only warns of is part of
 * it: a new status, or a header or a parameter that is gone, breaks the clients that use it.
 */
async function breakingChanges(released: string, present: string): Promise<object[]> {
  return JSON.parse(await outputOf(program, ['breaking', '--format', 'json', released, present]))
}
