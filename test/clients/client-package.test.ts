/**
 * The package of the client works where its consumers install it: in a project of its own, in plain Node 20, in TypeScript and
 * in a bundle for browsers.
 */
import { copyFileSync, globSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { createContext, runInContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packageName, packClient } from '../../contracts/api/client-package/pack.ts'
import { makeDataDirectory } from '../support/deployment/service-process.ts'
import { keyHeaders } from '../support/query/app.ts'
import { useQueryService } from '../support/query/service.ts'
import { campaignRow } from '../support/query/tables.ts'
import { needs } from '../support/runner/requirements.ts'
import { node20 } from './node-20.ts'
import { outputOf, path } from './programs.ts'

const prepareMsMax = 360_000
const bytesMax = 165_000
const ids = Array.from({ length: 25 }, (_, n) => `c${String(n).padStart(2, '0')}`)
const { store, app } = useQueryService()
const directory = makeDataDirectory()
const project = join(realpathSync(directory.path), 'project')
const installed = join(project, 'node_modules', packageName)
let older: Awaited<ReturnType<typeof node20>>

beforeAll(async () => {
  older = await node20()
  const tarball = packClient(project)
  for (const name of globSync('*', { cwd: path('consumer') })) {
    copyFileSync(path(`consumer/${name}`), join(project, name))
  }
  writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  const quiet = ['--no-audit', '--no-fund', '--silent']
  // Offline: whatever else the package needed could not be installed.
  await outputOf('npm', ['install', '--offline', ...quiet, `./${basename(tarball)}`], { cwd: project })
}, prepareMsMax)

afterAll(() => directory.remove())

test('the installed package is the only one, small, with licence, README and the version of the program', () => {
  const packages = globSync('{*,@*/*}/package.json', { cwd: join(project, 'node_modules') })
  expect(packages).toEqual([`${packageName}/package.json`])
  const { version, engines, dependencies } = read('package.json')
  expect({ version, engines, dependencies }).toEqual({
    version: JSON.parse(readFileSync(path('../../package.json'), 'utf8')).version,
    engines: { node: '>=20' },
    dependencies: undefined,
  })
  const files = globSync('**/*', { cwd: installed }).filter(name => statSync(join(installed, name)).isFile())
  expect(files.filter(name => !/\.(d\.ts|js)$/.test(name)).toSorted()).toEqual([
    'LICENSE',
    'README.md',
    'cli.mjs',
    'package.json',
  ])
  const bytes = files.map(name => statSync(join(installed, name)).size)
  expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(bytesMax)
})

test('plain Node 20 mirrors, lists, reads and gets the errors', async context => {
  needs(context, older.requirement)
  await store().putCampaigns(ids.map(id => campaignRow(id)))
  const seen = JSON.parse(
    await outputOf(older.program, ['program.mjs'], {
      cwd: project,
      environment: { JOB: JSON.stringify({ ...job(), slug: 'slug-c03' }), NODE_OPTIONS: '' },
    }),
  )
  expect(seen).toMatchObject({
    node: expect.stringMatching(/^20\./),
    mirrored: ids,
    saved: 1,
    listed: ids.slice(0, 10),
    total: 25,
    detail: { id: 'c03', description: 'What it is about.' },
    stats: { projects_total: 25 },
    unknown: { isClientError: true, code: 'not_found' },
  })
})

test('its command says whether a copy is right, and what is wrong with it', async context => {
  needs(context, older.requirement)
  await store().putCampaigns(ids.map(id => campaignRow(id)))
  const { baseUrl, key, secret } = job()
  const get = (query: string) =>
    fetch(`${baseUrl}/projects?limit=100${query}`, { headers: keyHeaders({ key, secret }) })
  const { data } = (await (await get('')).json()) as { data: { id: string; updated_at: string }[] }
  const right = data.map(({ id, updated_at }) => JSON.stringify({ id, updated_at }))
  // The pause in which cached answers expire.
  const noPause = `const wait = setTimeout; globalThis.setTimeout = (work, ms) => wait(work, ms === 62000 ? 0 : ms)`
  const said = (lines: readonly string[], more = '') => {
    writeFileSync(join(project, 'copy.ndjson'), lines.join('\n'))
    const command = `"${older.program}" --import 'data:text/javascript,${encodeURIComponent(noPause)}' node_modules/.bin/pledgeview-client`
    return outputOf(
      'bash',
      ['-c', `${command} verify ${baseUrl} ${more} <copy.ndjson 2>&1; echo "exit $?"`],
      {
        cwd: project,
        environment: { PLEDGEVIEW_KEY: key, PLEDGEVIEW_SECRET: secret, NODE_OPTIONS: '' },
      },
    )
  }
  expect(await said(right)).toMatch(/^equal as of \S+Z: 25 campaigns\nexit 0\n$/)
  // Without --no, npx would install what another one publishes under this name.
  expect(await said(right, '--help')).toMatch(/^Usage: npx --no @pledgeview\/client verify /)
  const extra = { id: 'extra', updated_at: '2026-01-01T00:00:00.000Z' }
  const wrong = [...right.slice(2), JSON.stringify(extra), JSON.stringify({ ...extra, id: data[1]?.id })]
  expect(await said(wrong)).toBe(
    `The copy lacks ${data[0]?.id}\nThe copy has, but they are not public: extra\n` +
      `The copy has with another updated_at ${data[1]?.id}\nexit 1\n`,
  )
  expect(JSON.parse((await said(wrong, '--json')).split('\n')[0] ?? '')).toMatchObject({
    leftOver: ['extra'],
  })
  const isGiven = (asOf: string) => said(right, `--as-of ${asOf}`)
  expect(await isGiven('yesterday')).toBe('--as-of is not an ISO 8601 timestamp\nexit 2\n')
  expect(await isGiven('2200-01-01')).toBe(
    "--as-of is in the future by this computer's clock: check the clock, or --as-of\nexit 2\n",
  )
  expect(await said(['{}'])).toBe('line 1 of the copy is not a JSON object with id and updated_at\nexit 2\n')
})

describe('TypeScript, strict and with checked declarations', () => {
  const strict = { strict: true, noEmit: true, skipLibCheck: false, exactOptionalPropertyTypes: true }
  const nodenext = { module: 'nodenext', target: 'es2022' }
  const types = { types: ['node'], typeRoots: [path('../../node_modules/@types')] }

  test.each([
    ['nodenext, in a project for browsers and Node', { ...nodenext, types: [] }],
    [
      'nodenext, with the types of Node and without those of browsers',
      { ...nodenext, lib: ['es2022'], ...types },
    ],
    ['a bundler', { module: 'esnext', moduleResolution: 'bundler', target: 'es2022', types: [] }],
  ])('%s', async (_, options) => {
    const compilerOptions = { ...strict, ...options }
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts'] }))
    const tsc = path('../../node_modules/typescript/bin/tsc')
    await expect(outputOf(process.execPath, [tsc], { cwd: project })).resolves.toBe('')
  })
})

test('a bundle for browsers has nothing of Node, and reads with fetch alone', async () => {
  await store().putCampaigns(ids.map(id => campaignRow(id)))
  const code = await bundle()
  expect(code).not.toMatch(/node:|\brequire\s*\(|\bprocess\b|\bBuffer\b|\bimport\s*[({'"]/)
  const seen = await new Promise<string>(done => {
    // What a page has, as far as the client needs it.
    const page = { fetch, URL, URLSearchParams, AbortController, setTimeout, clearTimeout, job: job(), done }
    runInContext(code, createContext(page))
  })
  expect(JSON.parse(seen)).toEqual({ listed: ids.slice(0, 10), total: 25 })
})

/** The script of a page as Vite builds it from the installed package. */
async function bundle(): Promise<string> {
  const vite = path('../../node_modules/vite/bin/vite.js')
  writeFileSync(join(project, 'index.html'), '<script type="module" src="/page.js"></script>')
  await outputOf(process.execPath, [vite, 'build', '--logLevel', 'warn'], { cwd: project })
  const [script, ...others] = globSync('dist/assets/*.js', { cwd: project })
  expect(others).toEqual([])
  return readFileSync(join(project, script ?? 'no script'), 'utf8')
}

function job() {
  return { baseUrl: `http://127.0.0.1:${app().port}/api/v1`, ...app().issue() }
}

function read(name: string) {
  return JSON.parse(readFileSync(join(installed, name), 'utf8'))
}
