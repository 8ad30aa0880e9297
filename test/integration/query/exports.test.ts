/** Whole copies: what `pledgeview export` writes is what the API shows. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { createServer, get as httpGet, type IncomingMessage, type RequestOptions } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { daysRemaining, readScope } from '../../../contracts/api/conventions.ts'
import { errors } from '../../../contracts/api/errors.ts'
import type { ProjectDetail } from '../../../contracts/api/schemas.ts'
import { type Credentials, hashSecret } from '../../../services/api-keys/credentials.ts'
import { createDownloads, defaultBounds } from '../../../services/exports/downloads.ts'
import { type ExportFile, latestManifest } from '../../../services/exports/latest.ts'
import {
  dropStatement,
  linesStatement,
  type OnExported,
  removeExports,
  writeExport,
} from '../../../services/exports/write.ts'
import { lockDataDirectory } from '../../../services/log/local/lock.ts'
import { inSession, openTables, type ServerTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import { settingsFor } from '../../support/clickhouse/clickhouse.ts'
import { keyHeaders, pepper, startTestApp, type TestApp } from '../../support/query/app.ts'
import { anyCampaign, fullCampaign } from '../../support/query/campaigns.ts'
import { useQueryService } from '../../support/query/service.ts'
import { codeIn, expectEveryPromise, readResponse } from '../../support/query/shape.ts'
import { type CampaignRow, campaignRow } from '../../support/query/tables.ts'

const { store, ask, app } = useQueryService()
let directory: string
let session: ServerTables

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pledgeview-exports-'))
})
afterAll(() => rm(directory, { recursive: true }))
beforeEach(() => {
  session = openTables(inSession(settingsFor(store().clickHouse)))
})
afterEach(() => session.close())

const noProgress: OnExported = () => undefined

/** `columns`: of the Parquet file. `onStream` runs before each of the files. */
async function exported({ onProgress = noProgress, onStream = async () => {} } = {}) {
  let columns = ''
  const stream: ServerTables['stream'] = async statement => {
    const rows = await session.rows<{ name: string; type: string }>({
      query: 'DESCRIBE TABLE copied_campaigns',
    })
    columns = rows.map(({ name, type }) => `${name} ${type}`).join(', ')
    await onStream()
    return session.stream(statement)
  }
  const source = { tables: { ...session, stream }, databases: store().databases }
  return { manifest: await writeExport(source, directory, onProgress), columns }
}

const foldersIn = async () => (await readdir(directory)).filter(name => name !== 'lock.sqlite')

async function fileOf(name: ExportFile | 'manifest.json'): Promise<Buffer> {
  return readFile(join(directory, (await foldersIn())[0] ?? '', name))
}

const parsed = (lines: string): ProjectDetail[] =>
  lines
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line))

const campaignsInLines = async () => parsed(gunzipSync(await fileOf('campaigns.ndjson.gz')).toString())

/** The campaigns of the Parquet file, as ClickHouse reads it. */
async function campaignsInParquet(columns: string): Promise<ProjectDetail[]> {
  const { url, user, password } = store().clickHouse
  const query = linesStatement.query.replaceAll('copied_campaigns', 'file')
  const form = new FormData()
  form.append('file', new Blob([await fileOf('campaigns.parquet')]), 'file')
  const parameters = { user, password, query, file_format: 'Parquet', file_structure: columns }
  const response = await fetch(`${url}/?${new URLSearchParams(parameters)}`, { method: 'POST', body: form })
  const text = await response.text()
  expect(response.status, text).toBe(200)
  return parsed(text)
}

/** Values that are hard to write. */
const awkward: Partial<CampaignRow> = {
  title: 'quotes " and \\ and / and \t and \u0001 and çok güzel 🎲',
  tags: ['', '"', "'", '/', ','],
  goal_amount: '9007199254740.9931',
  pledged_amount: '0.0001',
  backer_count: Number.MAX_SAFE_INTEGER,
  rewards: [
    {
      reward_id: '"',
      title: '\n',
      description: '\\',
      amount: 0.5,
      quantity_available: null,
      quantity_claimed: 0,
      quantity_remaining: null,
    },
  ],
}

describe('a whole copy', () => {
  it('has each public campaign as the API shows it, and nothing else, in both formats', async () => {
    const worlds = fc.array(anyCampaign, { minLength: 1, maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(worlds, async world => {
        await store().clear()
        const hidden = [campaignRow('gone', { is_deleted: 1 }), campaignRow('back', { is_deleted: 1 })]
        await store().putCampaigns(hidden)
        await store().putCampaigns([
          campaignRow('back'),
          ...world.map((row, at) => campaignRow(`c${at}`, row)),
        ])
        await store().advanceWatermark()
        const { manifest, columns } = await exported()
        const campaigns = await campaignsInLines()
        expect(campaigns.map(({ id }) => id)).toEqual(['back', ...world.map((_, at) => `c${at}`)].sort())
        expect(manifest.campaigns).toBe(campaigns.length)
        app().clock.advance(60_001)
        for (const { days_remaining, ...campaign } of campaigns) {
          const { data } = (await ask(`/projects/${campaign.slug}`)).json
          expect({ ...campaign, days_remaining: data.days_remaining }).toEqual(data)
          expect(days_remaining).toBe(daysRemaining(campaign.end_date, Date.parse(manifest.created_at)))
        }
        expect(await campaignsInParquet(columns)).toEqual(campaigns)
      }),
      { numRuns: 15, examples: [[[fullCampaign, awkward]]] },
    )
  })

  it('is of one moment: a fold between its two files changes neither', async () => {
    await store().putCampaigns([campaignRow('a'), campaignRow('b')])
    await store().advanceWatermark()
    const onStream = async () => {
      const changed = [
        campaignRow('a', { is_deleted: 1 }),
        campaignRow('b', { title: 'new' }),
        campaignRow('c'),
      ]
      await store().putCampaigns(changed)
    }
    const { manifest, columns } = await exported({ onStream })
    const titles = (campaigns: ProjectDetail[]) => campaigns.map(({ title }) => title)
    expect(titles(await campaignsInLines())).toEqual(['Title of a', 'Title of b'])
    expect(titles(await campaignsInParquet(columns))).toEqual(['Title of a', 'Title of b'])
    expect(manifest).toMatchObject({ campaigns: 2, api_version: 'v1' })
  })

  it.each(['copy', 'campaigns.ndjson.gz', 'campaigns.parquet'])(
    'is not there if it breaks off at %s',
    async stage => {
      await store().putCampaigns([campaignRow('a')])
      const { manifest } = await exported()
      const breakOff: OnExported = at => {
        if (at === stage) throw new Error('broken off')
      }
      await expect(exported({ onProgress: breakOff })).rejects.toThrow('broken off')
      expect(await latestManifest(directory)).toEqual(manifest)
      // ClickHouse keeps the session for a moment: until it notices that the reader is gone.
      await vi.waitFor(() => session.run(dropStatement), { timeout: 60_000 })
      const next = await exported()
      expect(await latestManifest(directory)).toEqual(next.manifest)
      expect(await foldersIn()).toHaveLength(1)
    },
  )

  it('is written by one process at a time, and the dry run of a purge only counts, without a lock', async () => {
    const copies = (await foldersIn()).length
    const lock = lockDataDirectory(directory)
    await expect(exported()).rejects.toThrow('another export writes to')
    expect(await removeExports(directory, true)).toBe(copies)
    lock.close()
  })
})

describe('the latest whole copy over HTTP', () => {
  let served: TestApp
  let key: Credentials
  const path = '/exports/latest/campaigns.parquet'
  beforeEach(async () => {
    const { tables, databases } = store()
    served = await startTestApp({ tables, databases, options: { PLEDGEVIEW_EXPORT_DIR: directory } })
    key = served.issue()
    await store().putCampaigns([campaignRow('a')])
    await store().advanceWatermark()
  })
  afterEach(() => served.close())

  const get = async (of: string, headers: Record<string, string> = {}) => {
    const response = await served.get(of, key, headers)
    return { response, body: Buffer.from(await response.arrayBuffer()) }
  }

  it('is the file of the manifest, with its sum and the watermark of before it was read, whole and in any parts', async () => {
    const { manifest } = await exported()
    expect(manifest.as_of).toBe((await ask('/projects')).headers['x-data-as-of'])
    expect(JSON.parse((await fileOf('manifest.json')).toString())).toEqual(manifest)
    const told = JSON.parse((await get('/exports/latest')).body.toString()).data
    expect(told).toEqual(manifest)
    for (const { name, bytes, sha256 } of manifest.files) {
      const { response, body } = await get(`/exports/latest/${name}`)
      expect(body).toEqual(await fileOf(name))
      expect([bytes, sha256]).toEqual([body.length, createHash('sha256').update(body).digest('hex')])
      const { headers } = response
      expect(headers.get('etag')).toBe(`"${sha256}"`)
      expect(headers.get('x-data-as-of')).toBe(manifest.as_of)
      expect(headers.get('x-ratelimit-limit')).toBe('120')
      await fc.assert(
        fc.asyncProperty(fc.nat(bytes - 1), fc.nat(bytes - 1), async (one, other) => {
          const [from, to] = [Math.min(one, other), Math.max(one, other)]
          const part = await get(`/exports/latest/${name}`, { range: `bytes=${from}-${to}` })
          expect(part.response.status).toBe(206)
          expect(part.response.headers.get('content-range')).toBe(`bytes ${from}-${to}/${bytes}`)
          expect(part.body).toEqual(body.subarray(from, to + 1))
        }),
        { numRuns: 10 },
      )
      const head = await fetch(response.url, { method: 'HEAD', headers: keyHeaders(key) })
      expect([head.status, head.headers.get('content-length')]).toEqual([200, String(bytes)])
    }
  })

  it('answers conditions and wrong ranges as RFC 9110 has it', async () => {
    const { manifest } = await exported()
    const { bytes = 0, sha256 } = manifest.files.find(({ name }) => path.endsWith(name)) ?? {}
    const statusOf = async (headers: Record<string, string>) => (await get(path, headers)).response.status
    const etag = `"${sha256}"`
    expect(await statusOf({ 'if-none-match': etag })).toBe(304)
    expect(await statusOf({ range: 'bytes=0-3', 'if-range': etag })).toBe(206)
    for (const other of ['"another"', `W/${etag}`, 'Thu, 19 Mar 2026 03:00:00 GMT'])
      expect(await statusOf({ range: 'bytes=0-3', 'if-range': other })).toBe(200)
    for (const range of ['bytes=0-1,4-5', 'bytes=3-1', 'bytes=-', 'lines=0-1', 'bytes=a-b'])
      expect(await statusOf({ range })).toBe(200)
    expect((await get(path, { range: 'bytes=-4' })).body.toString()).toBe('PAR1')
    for (const range of [`bytes=${bytes}-`, 'bytes=-0', 'bytes=99999999999999999999-']) {
      const refused = await readResponse(await served.get(path, key, { range }))
      expect([refused.status, codeIn(refused)]).toEqual([416, 'malformed_request'])
      expectEveryPromise({ ...refused, status: errors.malformed_request.status })
      expect(refused.headers['content-range']).toBe(`bytes */${bytes}`)
    }
  })

  it('is for keys alone, and no other file is', async () => {
    await exported()
    for (const [of, credentials, status] of [
      [path, undefined, 401],
      [path, served.issue([]), 403],
      ['/exports/latest/manifest.json', key, 404],
      ['/exports/latest/..%2flock.sqlite', key, 404],
      ['/exports/latest/%2e%2e/lock.sqlite', key, 404],
      [`/exports/${(await foldersIn())[0]}/campaigns.parquet`, key, 404],
    ] as const) {
      const response = await readResponse(await served.get(of, credentials))
      expect(response.status, of).toBe(status)
      expectEveryPromise(response)
    }
    expect((await app().get('/exports/latest', app().issue())).status).toBe(404)
    expect((await app().get(path, app().issue())).status).toBe(404)
  })

  it('follows no link', async () => {
    await exported()
    const [folder = ''] = await foldersIn()
    const elsewhere = join(directory, 'elsewhere')
    await rename(join(directory, folder), elsewhere)
    await symlink(elsewhere, join(directory, folder))
    expect((await get(path)).response.status).toBe(404)
    await rm(join(directory, folder))
    await rename(elsewhere, join(directory, folder))
    await rm(join(directory, folder, 'campaigns.parquet'))
    await symlink('/etc/passwd', join(directory, folder, 'campaigns.parquet'))
    expect((await get(path)).response.status).toBe(500)
    await exported()
  })

  /** A server of downloads alone. Each path is an owner. */
  async function serveDownloads(bounds: Partial<typeof defaultBounds>) {
    const send = createDownloads(directory, { ...defaultBounds, ...bounds })
    const server = createServer((request, response) => {
      const rest = { name: 'campaigns.parquet', isAllowed: () => true, begin: () => ({}) } as const
      send({ request, response, owner: request.url ?? '', ...rest }).catch(() => undefined)
    })
    onTestFinished(() => void server.close())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    return { port, connections: () => promisify(server.getConnections).call(server) }
  }

  /** Begins a download and reads nothing of it. The file is larger than all buffers on the way. */
  async function begin(options: RequestOptions): Promise<IncomingMessage> {
    const asked = httpGet({ ...options, agent: false })
    onTestFinished(() => void asked.destroy())
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    expect(answer.statusCode).toBe(200)
    return answer
  }

  it.each(['its key is revoked', 'its time is over'])('ends a running download when %s', async reason => {
    await exported()
    await growParquet()
    const isRevoked = reason === 'its key is revoked'
    const { port, connections } = isRevoked ? served : await serveDownloads({ msMax: 200, lookMs: 20 })
    await begin({ port, path: `/api/v1${path}`, headers: keyHeaders(key) })
    if (isRevoked) served.revoke(key.key)
    await expect.poll(connections, { timeout: 60_000 }).toBe(0)
    await exported()
  })

  it('leaves room for others beside the slow downloads of twenty keys', async () => {
    await exported()
    await growParquet()
    const { port } = await serveDownloads({})
    for (let key = 0; key < 20; key++)
      await Promise.all(Array.from({ length: 8 }, () => begin({ port, path: `/${key}` })))
    await begin({ port, path: '/other' })
    await exported()
  })

  it('goes on while ClickHouse is away for so long that no key is known any more', async () => {
    await exported()
    await growParquet()
    let [isAway, looks] = [false, 0]
    const known = { key: key.key, secretHash: hashSecret(pepper, key.secret), scopes: [readScope] }
    const lookup = () => {
      looks++
      if (isAway) throw new Error('last read 60001 ms ago')
      return known
    }
    const { tables, databases } = store()
    const options = { PLEDGEVIEW_EXPORT_DIR: directory }
    const away = await startTestApp({ tables, databases, options, overrides: { keyRing: { lookup } } })
    onTestFinished(() => away.close())
    await begin({ port: away.port, path: `/api/v1${path}`, headers: keyHeaders(key) })
    isAway = true
    const looked = looks
    await expect.poll(() => looks).toBeGreaterThan(looked + 2)
    expect(await away.connections()).toBe(1)
    await exported()
  })

  it('runs eight times at once for one key, and the ninth waits until one has ended', async () => {
    await exported()
    await growParquet()
    // How long it waits is not what is asked here.
    const { port } = await serveDownloads({ waitMsMax: 100_000 })
    const [first] = await Promise.all(Array.from({ length: 8 }, () => begin({ port, path: '/one' })))
    let isBegun = false
    const ninth = begin({ port, path: '/one' }).then(() => {
      isBegun = true
    })
    for (const other of ['/a', '/b', '/c', '/d']) await begin({ port, path: other })
    expect(isBegun).toBe(false)
    first?.destroy()
    await ninth
    await exported()
  })
})

/** Makes the Parquet file of the copy one of a gigabyte that takes no room. */
async function growParquet(): Promise<void> {
  const folder = join(directory, (await foldersIn())[0] ?? '')
  const manifest = await latestManifest(directory)
  const files = manifest?.files.map(file =>
    file.name === 'campaigns.parquet' ? { ...file, bytes: 1e9 } : file,
  )
  await truncate(join(folder, 'campaigns.parquet'), 1e9)
  await writeFile(join(folder, 'manifest.json'), JSON.stringify({ ...manifest, files }))
}
