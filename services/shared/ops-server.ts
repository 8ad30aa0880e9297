/**
 * The ops port: liveness, readiness, metrics and status of one process; private by its address.
 *
 * What can name people (the keys' contact addresses) is answered only to the bearer of the process's own token, which
 * stands in a file that the owner of the data directory alone can read.
 */
import { readFileSync } from 'node:fs'
import Fastify, { type FastifyInstance } from 'fastify'
import type { KeyDirectory } from './api-keys.ts'
import { isBearer } from './bearer.ts'
import { answered, type Check } from './checks.ts'
import type { Metrics } from './metrics.ts'

export interface OpsServerDependencies {
  /** Whether the process moves; a `false` means: end it and start another. */
  health: () => Record<string, Check>
  /** Whether it should get traffic: dependencies answer, lag is within bound. */
  readiness: () => Promise<Record<string, Check>>
  status: () => Promise<object>
  metrics: Metrics
  /** Runs before a scrape, for gauges that are read and not counted. */
  beforeScrape: () => Promise<void>
  keys?: { directory: KeyDirectory; token: string }
}

const openapi = new URL('../../contracts/api/openapi.json', import.meta.url)

/** The server, not listening yet. */
export function createOpsServer(dependencies: OpsServerDependencies): FastifyInstance {
  const server = Fastify({ logger: false, exposeHeadRoutes: false })

  server.setErrorHandler((error, _request, reply) => {
    reply.code(500).send({ error: error instanceof Error ? error.message : String(error) })
  })

  server.get('/healthz', (_request, reply) => {
    const checks = dependencies.health()
    reply.code(allOk(checks) ? 200 : 503).send({ ok: allOk(checks), checks })
  })

  server.get('/readyz', async (_request, reply) => {
    const checks = await dependencies.readiness()
    return reply.code(allOk(checks) ? 200 : 503).send({ ok: allOk(checks), checks })
  })

  server.get('/metrics', async (_request, reply) => {
    // A scrape tells all the rest also while what the gauges are read from does not answer.
    await answered(async () => {
      await dependencies.beforeScrape()
      return { ok: true, detail: 'read' }
    })
    const { registry } = dependencies.metrics
    return reply.type(registry.contentType).send(await registry.metrics())
  })

  server.get('/status', () => dependencies.status())

  server.get('/openapi.json', (_request, reply) => {
    reply.type('application/json').send(readFileSync(openapi))
  })

  const { keys } = dependencies
  if (keys) {
    server.get<{ Querystring: { account?: string; key?: string } }>('/keys', async (request, reply) => {
      if (!isBearer(request.headers.authorization, keys.token))
        return reply.code(401).send({ error: 'no token' })
      const { account, key } = request.query
      if (account !== undefined) return { keys: await keys.directory.ofAccount(account) }
      if (key !== undefined) return { keys: await keys.directory.find(key) }
      return reply.code(400).send({ error: 'account or key is missing' })
    })
  }

  return server
}

function allOk(checks: Record<string, Check>): boolean {
  return Object.values(checks).every(check => check.ok)
}
