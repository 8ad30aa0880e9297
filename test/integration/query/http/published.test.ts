/** What the public port says of itself, and of a version that comes to its end. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PublicAddresses } from '../../../../contracts/api/published-openapi.ts'
import type { ApiVersion } from '../../../../contracts/api/versions.ts'
import type { Credentials } from '../../../../services/api-keys/credentials.ts'
import { guideContent } from '../../../../services/portal/guide/guide.ts'
import { serviceBodySchema } from '../../../../services/query/endpoints/first-page.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import { keyHeaders, startTestApp, type TestApp } from '../../../support/query/app.ts'
import { fakeTables, snapshotRow } from '../../../support/query/fake-tables.ts'
import { sendRaw } from '../../../support/query/raw-http.ts'
import { expectEveryPromise, readResponse } from '../../../support/query/shape.ts'

const publicAddresses = {
  apiUrl: 'https://api.example/data/api/v1/',
  portalUrl: 'https://developers.example/',
}
const docs = 'https://developers.example/docs'
let app: TestApp
let reader: Credentials

function useApp(start: () => Promise<TestApp>): void {
  beforeAll(async () => {
    app = await start()
    reader = app.issue()
  })
  afterAll(() => app.close())
}

const at = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${app.port}${path}`, init)
// biome-ignore lint/suspicious/noExplicitAny: the tests compare what is in it.
const bodyOf = (response: Response): Promise<any> => response.json()
const json = async (path: string) => bodyOf(await at(path))

describe('an installation with addresses', () => {
  useApp(() => startTestApp({ tables: fakeTables().tables, overrides: { addresses: () => publicAddresses } }))

  it.each(['/', '/api/v1', '/api/v1/'])('answers %s with where to go, without a key', async path => {
    const body = await json(path)
    expect(serviceBodySchema.parse(body)).toEqual(body)
    expect(body.data).toEqual({
      title: 'Public campaign data',
      documentation_url: docs,
      keys_url: 'https://developers.example/access',
      openapi_url: 'https://api.example/data/openapi.json',
      versions: [
        { name: 'v1', url: 'https://api.example/data/api/v1', deprecated_at: null, sunset_at: null },
      ],
    })
  })

  it('shows everybody its OpenAPI document, with a server that resolves', async () => {
    const document = await json('/openapi.json')
    expect(document.servers.map(({ url }: { url: string }) => url)).toEqual([
      'https://api.example/data/api/v1',
    ])
    expect(document.externalDocs.url).toBe(docs)
    expect(document.info.contact.url).toBe(docs)
  })

  it('leads from 401 to the documentation', async () => {
    const { error } = await bodyOf(await app.get('/stats'))
    expect(error.message).toBe(`A valid API key and secret are required. See ${docs}#first-call`)
    const document = {
      info: { version: '' },
      paths: {},
      components: { schemas: {}, headers: {}, responses: {} },
    }
    const config = readConfig({})
    const { text } = guideContent({ apiUrl: publicAddresses.apiUrl, hasPackage: false, document, config })
    for (const anchor of ['first-call', 'error-not_found']) expect(text).toContain(`id="${anchor}"`)
  })

  it('leads from 404 to the documentation, with the same bytes for campaigns and for paths', async () => {
    const bodies = [
      await (await app.get('/projects/hidden', reader)).text(),
      await (await app.get('/nowhere', reader)).text(),
      await (await at('/nowhere')).text(),
      // Answered by the parser's handler.
      (await sendRaw(app.port, 'FETCH /nowhere HTTP/1.1\r\nHost: x\r\n\r\n'))[0]?.body,
    ]
    expect(new Set(bodies)).toEqual(
      new Set([
        `{"error":{"code":"not_found","message":"There is no such public resource. See ${docs}#error-not_found"}}`,
      ]),
    )
  })
})

describe('an installation without a portal', () => {
  let addresses: PublicAddresses = { apiUrl: undefined, portalUrl: undefined }
  useApp(() => startTestApp({ tables: fakeTables().tables, overrides: { addresses: () => addresses } }))

  it('leads to its own first page, and invents no address', async () => {
    const { error } = await bodyOf(await app.get('/stats'))
    expect(error.message).toMatch(/ See \/api\/v1$/)
    expect((await json('/api/v1')).data).toMatchObject({
      documentation_url: null,
      keys_url: null,
      openapi_url: '/openapi.json',
      versions: [{ url: '/api/v1' }],
    })
    const document = await json('/openapi.json')
    expect(document.servers[0].url).toBe('/api/v1')
    expect(document).not.toHaveProperty('externalDocs')
    expect(document.info.contact).not.toHaveProperty('url')
  })

  it('uses addresses from the moment when they are known', async () => {
    addresses = publicAddresses
    expect((await json('/')).data.documentation_url).toBe(docs)
    expect((await bodyOf(await app.get('/stats'))).error.message).toContain(docs)
  })
})

describe('a deprecated version', () => {
  const versions: ApiVersion[] = [
    {
      name: 'v1',
      basePath: '/api/v1',
      deprecation: { since: '2027-01-01T00:00:00Z', sunset: '2028-01-01T00:00:00Z', successor: '/api/v2' },
    },
  ]
  const counted: { status: number; isDeprecated: boolean }[] = []
  const links =
    '<https://developers.example/changes>; rel="deprecation"; type="text/html", ' +
    '<https://developers.example/changes>; rel="sunset"; type="text/html", </api/v2>; rel="successor-version"'
  const snapshot = () => [{ ...snapshotRow, ids: 'c1/c2', total: 2 }]
  useApp(() =>
    startTestApp({
      tables: fakeTables({ snapshot }).tables,
      options: { PLEDGEVIEW_API_URL: publicAddresses.apiUrl },
      overrides: {
        versions,
        addresses: () => publicAddresses,
        onKeyAnswered: (_key, status, isDeprecated) => void counted.push({ status, isDeprecated }),
      },
    }),
  )

  it.each([
    ['200', '/stats', {}],
    ['304', '/stats', { 'if-none-match': '*' }],
    ['400', '/projects?limit=0', {}],
    ['404', '/projects/hidden', {}],
    ['404', '/nowhere', {}],
    ['401', '/stats', { 'x-api-secret': 'wrong' }],
    ['200', '', {}],
  ])('says so with %s for %s', async (status, path, headers) => {
    const response = await app.get(path, reader, headers)
    expect(String(response.status)).toBe(status)
    expect(response.headers.get('deprecation')).toBe('@1798761600')
    expect(response.headers.get('sunset')).toBe('Sat, 01 Jan 2028 00:00:00 GMT')
    expect(response.headers.get('link')).toBe(links)
    expectEveryPromise(await readResponse(response))
    await expect.poll(() => counted.at(-1)).toEqual({ status: response.status, isDeprecated: true })
  })

  it('says so with 405 and a preflight', async () => {
    const refused = await at('/api/v1/stats', { method: 'POST' })
    const preflight = await at('/api/v1/stats', { method: 'OPTIONS' })
    for (const response of [refused, preflight]) {
      expect(response.headers.get('link')).toBe(links)
    }
    expect([refused.status, preflight.status]).toEqual([405, 204])
  })

  it('keeps the link to the next page first, below the path at which consumers reach the API', async () => {
    const response = await app.get('/projects?limit=1', reader)
    expect(response.headers.get('link')).toBe(
      `</data/api/v1/projects?limit=1&offset=1>; rel="next", ${links}`,
    )
  })

  it('leaves out what is not decided or not known', async () => {
    const deprecation = { since: '2027-01-01T00:00:00Z', sunset: null, successor: null }
    const overrides = { versions: [{ name: 'v1', basePath: '/api/v1', deprecation }] }
    const other = await startTestApp({ tables: fakeTables().tables, overrides })
    const { headers } = await other.get('/stats')
    await other.close()
    const named = ['deprecation', 'sunset', 'link'].map(name => headers.get(name))
    expect(named).toEqual(['@1798761600', null, null])
  })

  it.each([
    'GET /api/%76%31/stats',
    'GET HTTPS://host/api/v1/nowhere',
    'POST /api/v1?limit=1',
    'POST /api/v1#x',
  ])('is found by %s', async line => {
    const [response] = await sendRaw(app.port, `${line} HTTP/1.1\r\nHost: x\r\n\r\n`)
    expect(response?.headers.link).toBe(links)
  })

  it('is not what is called at the root or under another path', async () => {
    for (const path of ['/', '/openapi.json', '/api/v10/stats', '/other/api/v1/stats']) {
      const response = await at(path, { headers: keyHeaders(reader) })
      expect(response.headers.has('deprecation')).toBe(false)
      await expect.poll(() => counted.at(-1)).toEqual({ status: response.status, isDeprecated: false })
    }
  })
})
