/** What the client says when there is no response, or when the base address is not the API's. Real sockets, no models. */
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createSocketServer } from 'node:net'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type ClientOptions, createClient } from '../../../contracts/api/client.ts'
import { errorBody } from '../../../contracts/api/errors.ts'
import { clients } from '../../clients/python-bridge.ts'
import { needs } from '../../support/runner/requirements.ts'

describe('without a response, the error names the address and the cause', () => {
  it('nothing listens', async () => {
    const { port, server } = await listen(createServer())
    await new Promise(resolve => server.close(resolve))
    const error = await failureOf(`http://127.0.0.1:${port}/api/v1`)
    expect(error).toMatchObject({ code: 'network_failure', status: null })
    const message = `no response from http://127.0.0.1:${port}/api/v1: fetch failed: connect ECONNREFUSED`
    expect(error.message.slice(0, message.length)).toBe(message)
    expect(error.cause).toBeInstanceOf(TypeError)
  })

  it('it takes too long', async () => {
    const { port } = await listen(createSocketServer())
    const { message } = await failureOf(`http://127.0.0.1:${port}/api/v1`, { attemptMsMax: 20 })
    expect(message).toContain('none within the time limit of 20 ms')
  })
})

describe('at a base address that is not the API, the error says so and gives the right form', () => {
  const page: RequestListener = (_, response) => response.end('<!doctype html><title>Shop</title>')

  it.each([
    ['', '/api/v1'],
    ['/', '/api/v1'],
    ['/v1', '/api/v1'],
    ['/api', '/api/v1'],
    ['/api/v2', '/api/v1'],
    ['/api/v1/projects', '/api/v1'],
    ['/gateway/stats', '/gateway/api/v1'],
  ])('a page instead of JSON at "%s": try "%s"', async (path, right) => {
    const port = await serve(page)
    const error = await failureOf(`http://127.0.0.1:${port}${path}`)
    expect(error).toMatchObject({ code: 'unexpected_response', status: 200 })
    expect(error.message).toContain('not a response of this API: status 200 with an HTML page')
    expect(error.message).toContain(`try http://127.0.0.1:${port}${right}`)
  })

  it.each([
    ['no content', ''],
    ['other JSON', '{"detail":"Not Found"}'],
    ['other JSON', '{"error":{"code":"no_such_page"}}'],
    ['other JSON', '{"error":"Not Found"}'],
    ['other JSON', 'null'],
    ['other content', 'Not Found'],
  ])('a 404 without an error of the API: %s', async (kind, body) => {
    const port = await serve((_, response) => response.writeHead(404).end(body))
    const error = await failureOf(`http://127.0.0.1:${port}/api/v1`)
    expect(error).toMatchObject({ code: 'unexpected_response', status: 404 })
    expect(error.message).toContain(`status 404 with ${body === 'null' ? 'other content' : kind}`)
  })

  it("the API's own 404, because /api/v1 is missing", async () => {
    const port = await serve((_, response) =>
      response.writeHead(404).end(JSON.stringify(errorBody('not_found'))),
    )
    const missing = await failureOf(`http://127.0.0.1:${port}`)
    expect(missing.code).toBe('not_found')
    expect(missing.message).toContain(`try http://127.0.0.1:${port}/api/v1`)
    const { message } = await failureOf(`http://127.0.0.1:${port}/api/v1/`)
    expect(message).not.toContain('baseUrl')
  })

  it('a redirect to another origin, which gets no credentials', async () => {
    const api = await serve((request, response) => {
      expect(request.headers.authorization).toBeUndefined()
      response.writeHead(401).end(JSON.stringify(errorBody('unauthorized')))
    })
    const port = await serve((request, response) =>
      response.writeHead(308, { location: `http://127.0.0.1:${api}${request.url}` }).end(),
    )
    const error = await failureOf(`http://127.0.0.1:${port}/api/v1`)
    expect(error.code).toBe('unauthorized')
    expect(error.message).toContain(`make http://127.0.0.1:${api}/api/v1 the baseUrl`)
  })
})

describe.each(clients)('an error of another server, in $language', ({ create, needs: requirement }) => {
  beforeEach(context => needs(context, requirement))

  it('of a proxy whose service is away does not say that the base address is wrong', async () => {
    const port = await serve((_, response) => response.writeHead(503).end('<p>Service Unavailable'))
    const error = await failureOf(`http://127.0.0.1:${port}/api/v1`, { create })
    expect(error).toMatchObject({ code: 'unexpected_response', status: 503 })
    expect(error.message).toMatch(/^status 503 without an error of this API from http(?!.*base_?url)/i)
  })

  it('tells of a redirect, and only if there was one, however the address is written', async () => {
    const port = await serve((request, response) => {
      if (request.headers.host?.startsWith('localhost')) return response.writeHead(404).end('<p>None')
      response.writeHead(302, { location: `http://localhost:${port}/page?token=t` }).end()
    })
    const direct = await failureOf(`http://LOCALHOST:${port}/api/v1`, { create })
    expect(direct.message).toMatch(/^not a response of this API: status 404 (?!.*redirect)/)
    const { message } = await failureOf(`http://127.0.0.1:${port}/api/v1`, { create })
    expect(message).toMatch(/after a redirect to http:\/\/localhost:\d+\/page\b(?!\?)/)
  })
})

/** The error of one attempt. It never contains the secret. */
async function failureOf(
  baseUrl: string,
  { create = createClient, ...options }: Partial<ClientOptions> & { create?: typeof createClient } = {},
) {
  const client = create({ baseUrl, key: 'pv_live_k', secret: 'hush', attemptsMax: 1, ...options })
  const error = await client.stats().then(
    () => Promise.reject(new Error('the request did not fail')),
    error => error,
  )
  expect(error.name).toBe('ClientError')
  expect(error.message).not.toContain('hush')
  return error as Error & { code: string }
}

async function serve(listener: RequestListener): Promise<number> {
  const { port } = await listen(createServer(listener))
  return port
}

async function listen<Server extends ReturnType<typeof createSocketServer>>(server: Server) {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port, server }
}
