/** Whole copies: what `pledgeview export` writes is what the API shows. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { type ClientRequest, createServer, get as httpGet, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { daysRemaining } from '../../../contracts/api/conventions.ts'
import { errors } from '../../../contracts/api/errors.ts'
import type { ProjectDetail } from '../../../contracts/api/schemas.ts'
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import { createDownloads } from '../../../services/exports/downloads.ts'
import { type ExportFile, latestManifest } from '../../../services/exports/latest.ts'
import { dropStatement, linesStatement } from '../../../services/exports/statement.ts'
import { type OnExported, writeExport } from '../../../services/exports/write.ts'
import { lockDataDirectory } from '../../../services/log/local/lock.ts'
import { inSession, openTables, type ServerTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import { settingsFor } from '../../support/clickhouse/clickhouse.ts'
import { keyHeaders, startTestApp, type TestApp } from '../../support/query/app.ts'
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

const text = fc.string({ unit: 'grapheme', maxLength: 12 })
const nullable = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(of, { nil: null })
const optional = nullable(text)
const moment = fc
  .date({ min: new Date('1970-01-02'), max: new Date('2200-01-01'), noInvalidDate: true })
  .map(date => date.toISOString().replace('T', ' ').replace('Z', ''))
const amount = fc
  .bigInt({ min: 0n, max: 10n ** 13n })
  .map(units => `${units / 10_000n}.${String(units % 10_000n).padStart(4, '0')}`)
const count = fc.nat()
const reward = fc.record({
  ...{ reward_id: text, title: text, description: text, amount: amount.map(Number) },
  ...{ quantity_available: nullable(count), quantity_claimed: count, quantity_remaining: nullable(count) },
})
const fields: fc.Arbitrary<Partial<CampaignRow>> = fc.record({
  ...{ title: text, subtitle: optional, subcategory: optional, location: optional, image_url: optional },
  ...{
    goal_amount: amount,
    pledged_amount: amount,
    percent_funded: fc.nat(10 ** 6).map(n => (n / 100).toFixed(2)),
  },
  ...{ backer_count: count, follower_count: count, uses_ai: fc.boolean(), is_staff_pick: fc.boolean() },
  ...{
    status: fc.constantFrom('LIVE', 'FUNDED', 'FAILED', 'CANCELLED'),
    tags: fc.array(text, { maxLength: 3 }),
  },
  ...{ launch_date: nullable(moment), end_date: nullable(moment), created_at: moment },
  ...{ creator_name: text, creator_avatar_url: optional, description: text, risks: text },
  rewards: fc.array(reward, { maxLength: 3 }),
})

describe('a whole copy', () => {
  it('has each public campaign as the API shows it, and nothing else, in both formats', async () => {
    const worlds = fc.array(fields, { minLength: 1, maxLength: 12 })
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
      { numRuns: 15 },
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

  it('has the sums of its files, and the watermark of before it was read', async () => {
    await store().putCampaigns([campaignRow('a')])
    await store().advanceWatermark()
    const { manifest } = await exported()
    expect(manifest.as_of).toBe((await ask('/projects')).headers['x-data-as-of'])
    for (const { name, bytes, sha256 } of manifest.files) {
      const file = await fileOf(name)
      expect([bytes, sha256]).toEqual([file.length, createHash('sha256').update(file).digest('hex')])
    }
    expect(JSON.parse((await fileOf('manifest.json')).toString())).toEqual(manifest)
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
      await session.run(dropStatement)
      const next = await exported()
      expect(await latestManifest(directory)).toEqual(next.manifest)
      expect(await foldersIn()).toHaveLength(1)
    },
  )

  it('is written by one process at a time', async () => {
    const lock = lockDataDirectory(directory)
    await expect(exported()).rejects.toThrow('another export writes to')
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

  it('is the file of the manifest, whole and in any parts', async () => {
    const { manifest } = await exported()
    const told = JSON.parse((await get('/exports/latest')).body.toString()).data
    expect(told).toEqual(manifest)
    for (const { name, bytes, sha256 } of manifest.files) {
      const { response, body } = await get(`/exports/latest/${name}`)
      expect(body).toEqual(await fileOf(name))
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

  it.each(['its key is revoked', 'its time is over'])('ends a running download when %s', async reason => {
    await exported()
    await growParquet()
    const bounded = createServer((request, response) => {
      send({
        request,
        response,
        name: 'campaigns.parquet',
        owner: '',
        isAllowed: () => true,
        begin: () => ({}),
      }).catch(() => undefined)
    })
    const send = createDownloads(directory, { ...shortBounds, msMax: 200 })
    await once(bounded.listen(0, '127.0.0.1'), 'listening')
    const isRevoked = reason === 'its key is revoked'
    const port = isRevoked ? served.port : (bounded.address() as AddressInfo).port
    const asked = httpGet({ port, path: `/api/v1${path}`, headers: keyHeaders(key) })
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    expect(answer.statusCode).toBe(200)
    if (isRevoked) served.revoke(key.key)
    // It reads nothing, so it does not notice the end: the file is larger than all buffers on the way.
    const open = () => (isRevoked ? served.connections() : promisify(bounded.getConnections).call(bounded))
    await expect.poll(open, { timeout: 60_000 }).toBe(0)
    asked.destroy()
    bounded.close()
    await exported()
  })

  it('leaves room for others beside the slow downloads of twenty keys', async () => {
    await exported()
    await growParquet()
    const send = createDownloads(directory)
    const server = createServer((request, response) => {
      const owner = request.url ?? ''
      const rest = { name: 'campaigns.parquet', isAllowed: () => true, begin: () => ({}) } as const
      send({ request, response, owner, ...rest }).catch(() => undefined)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const asked: ClientRequest[] = []
    onTestFinished(() => {
      for (const one of asked) one.destroy()
      server.close()
    })
    const begins = async (path: string) => {
      const one = httpGet({ port, path, agent: false })
      asked.push(one)
      const [answer] = (await once(one, 'response')) as [IncomingMessage]
      return answer.statusCode
    }
    for (let key = 0; key < 20; key++) await Promise.all(Array.from({ length: 8 }, () => begins(`/${key}`)))
    expect(await begins('/other')).toBe(200)
    await exported()
  })
})

const shortBounds = {
  max: 1,
  perOwnerMax: 1,
  waitingPerOwnerMax: 1,
  waitMsMax: 1_000,
  silenceMsMax: 60_000,
  lookMs: 20,
}

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
