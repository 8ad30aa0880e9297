/** Python: the client of the project, one that openapi-python-client generates, and DuckDB read the API over HTTP. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { writeExport } from '../../services/exports/write.ts'
import { inSession, openTables } from '../../services/tables/clickhouse/clickhouse.ts'
import { settingsFor } from '../support/clickhouse/clickhouse.ts'
import { makeDataDirectory } from '../support/deployment/service-process.ts'
import { startTestApp } from '../support/query/app.ts'
import { useQueryService } from '../support/query/service.ts'
import { campaignRow } from '../support/query/tables.ts'
import { needs, type Requirement } from '../support/runner/requirements.ts'
import { outputOf, path, pythonEnvironment } from './programs.ts'

const environment = pythonEnvironment('openapi-python-client', path('python-api/requirements.txt'))
const bin = dirname(environment.program('python'))
const downloadMsMax = 360_000
const pageSize = 10
const ids = Array.from({ length: 25 }, (_, n) => `c${String(n).padStart(2, '0')}`)

const { store, app, ask, list } = useQueryService()
let python: Requirement

beforeAll(async () => {
  python = await environment.requirement()
}, downloadMsMax)

beforeEach(context => needs(context, python))

test('the generated client lists, reads, pages, filters and gets the errors', async () => {
  await store().putCampaigns(
    ids.map((id, n) =>
      campaignRow(id, { status: n % 2 ? 'FUNDED' : 'LIVE', backer_count: n, subtitle: null }),
    ),
  )
  await store().advanceWatermark()
  const seen = await useGeneratedClient()
  expect(seen).toMatchObject({ ids, pages: 3, changed: 0, launchedIn: 0, again: 304 })
  const funded = ids.filter((_, n) => n % 2).toReversed()
  expect(seen.filtered).toEqual(funded)
  expect(inMoments(seen.first)).toEqual(inMoments((await list()).data[0]))
  expect(inMoments(seen.detail)).toEqual(inMoments((await ask('/projects/slug-c03')).json.data))
  expect(inMoments(seen.stats)).toEqual(inMoments((await ask('/stats')).json.data))
  expect(seen).toMatchObject({
    unknown: { status: 404, code: 'not_found' },
    invalid: { status: 400, code: 'invalid_parameter' },
    refused: { status: 401, code: 'unauthorized' },
  })
})

test('DuckDB reads a whole copy over HTTP in one line, by ranges, with the key in a header that no other host gets', async () => {
  const rows = ids.map(id => campaignRow(id, { status: 'LIVE', pledged_amount: '12.3456' }))
  await store().putCampaigns([...rows, campaignRow('ended', { status: 'FAILED' })])
  await withWholeCopy(async (served, log) => {
    const other = await openOther()
    const origin = `http://127.0.0.1:${served.port}`
    const printed = await outputOf(join(bin, 'python'), [path('python-api/whole_copy.py')], {
      stdin: JSON.stringify({ origin, other: `${other.url}/file.csv`, ...served.issue() }),
    }).finally(other.close)
    expect(other.authorizations).not.toHaveLength(0)
    expect(other.authorizations.filter(Boolean)).toEqual([])
    expect(JSON.parse(printed)).toEqual(ids.map(id => [id, 'A Creator', 12.3456, 0, '2026-02-01']))
    const answers = log.map(line => JSON.parse(line)).filter(({ route }) => route?.endsWith('.parquet'))
    expect(answers.map(({ status }) => status)).toContain(206)
  })
})

test('the Python client reads, says what the API says, starts a copy with a whole one, repairs it, makes a frame of it, undoes half a walk, and after years deletes what left', async () => {
  const far = { end_date: '2299-12-31 00:00:00.000' }
  await store().putCampaigns(
    ids.map((id, n) => campaignRow(id, { status: n % 2 ? 'FUNDED' : 'LIVE', ...(id === 'c24' && far) })),
  )
  await withWholeCopy(async (served, _, directory) => {
    const baseUrl = `http://127.0.0.1:${served.port}/api/v1`
    const nobody = 'http://127.0.0.1:1/api/v1'
    const job = { baseUrl, nobody, slug: 'slug-c03', file: join(directory, 'copy.sqlite'), ...served.issue() }
    const printed = await outputOf(join(bin, 'python'), [path('python-api/mirror.py')], {
      stdin: JSON.stringify(job),
      environment: { PYTHONPATH: path('../../contracts/api/client-python'), PYTHONDONTWRITEBYTECODE: '1' },
    })
    const [live, funded] = [0, 1].map(rest => ids.filter((_, n) => n % 2 === rest))
    expect(JSON.parse(printed)).toMatchObject({
      live,
      page: { ids: funded?.slice(0, 5), total: 12, has_more: true },
      detail: { id: 'c03', description: 'What it is about.', rewards: [] },
      stats: { projects_total: 25 },
      refused: { status: 401, message: expect.stringMatching(/^unauthorized: .*key/i) },
      lost: {
        code: 'network_failure',
        message: expect.stringMatching(/^no response from http:\/\/127\.0\.0\.1:1\/api\/v1: .*refused/i),
      },
      copied: 25,
      texts: true,
      kept: expect.stringMatching(/^20.*Z$/),
      wrong: [false, ['c00'], ['extra'], ['c01']],
      equal: [true, [], [], []],
      frame: {
        shape: [25],
        types: ['datetime64[ns, UTC]', 'int64', 'float64'],
        creator: ['A Creator'],
        withoutEnd: ['c24'],
      },
      half: [0],
      again: ids,
    })
  })
})

/** A service that offers a whole copy of the campaigns that are there, and its log. */
async function withWholeCopy(
  use: (served: Awaited<ReturnType<typeof startTestApp>>, log: string[], directory: string) => Promise<void>,
) {
  await store().advanceWatermark()
  const { tables, databases, clickHouse } = store()
  const directory = makeDataDirectory()
  const session = openTables(inSession(settingsFor(clickHouse)))
  const options = { PLEDGEVIEW_EXPORT_DIR: directory.path }
  const log: string[] = []
  const served = await startTestApp({ tables, databases, options, log })
  try {
    await writeExport({ tables: session, databases }, directory.path, () => undefined)
    await use(served, log, directory.path)
  } finally {
    await served.close()
    await session.close()
    directory.remove()
  }
}

async function useGeneratedClient() {
  const directory = makeDataDirectory()
  try {
    await outputOf(
      join(bin, 'openapi-python-client'),
      [
        ...['generate', '--path', path('../../contracts/api/openapi.json')],
        ...['--config', path('python-api/generator.yml')],
        // A warning says that it leaves something out.
        ...['--fail-on-warning', '--meta', 'none', '--output-path', join(directory.path, 'campaigns')],
      ],
      // It formats the code with a program beside it.
      { environment: { PATH: `${bin}:${process.env.PATH}` } },
    )
    const job = {
      baseUrl: `http://127.0.0.1:${app().port}/api/v1`,
      ...app().issue(),
      pageSize,
      category: 'Games',
      slug: 'slug-c03',
    }
    const printed = await outputOf(join(bin, 'python'), [path('python-api/client.py')], {
      stdin: JSON.stringify(job),
      environment: { PYTHONPATH: directory.path },
    })
    return JSON.parse(printed)
  } finally {
    directory.remove()
  }
}

/** Another host, with a file. It keeps the `Authorization` of each request. */
async function openOther() {
  const authorizations: (string | undefined)[] = []
  const server = createServer(({ headers }, reply) => {
    authorizations.push(headers.authorization)
    reply.end('a,b\n1,2\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  function close() {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${port}`, authorizations, close }
}

/** Python writes a moment in another form than the API. */
function inMoments(body: unknown): unknown {
  return JSON.parse(JSON.stringify(body), (_, value) =>
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(value) ? Date.parse(value) : value,
  )
}
