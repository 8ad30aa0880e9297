/**
 * The ops port: liveness, readiness, metrics and status of one process. It must not be reachable from outside.
 *
 * It answers only for IP addresses, `localhost` and the configured names (`hostMatcher`), against DNS rebinding.
 */

import { isIP } from 'node:net'
import Fastify, { type FastifyInstance } from 'fastify'
import { kept } from '../async/kept.ts'
import { within } from '../async/sleep.ts'
import type { Config } from '../config.ts'
import { createConnections } from '../http/connections.ts'
import { messageOf } from '../message-of.ts'
import { answerMsMax, type Check } from './checks.ts'
import type { Metrics } from './metrics.ts'

export interface OpsServerDependencies {
  /** Names that it answers for, beside addresses and the loopback's names. */
  hosts: readonly string[]
  /** Whether the process works. `false` means: restart it. */
  health: () => Record<string, Check>
  /** Whether it should get traffic: what it cannot do without answers, and its lag is within bounds. */
  readiness: () => Promise<Record<string, Check>>
  status: () => Promise<object>
  metrics: Metrics
  /** Runs before a scrape, to update gauges. */
  beforeScrape: () => Promise<void>
}

/** Probes, a scrape and an operator need a few connections. More would only hold memory. */
const connectionsPerAddressMax = 64

/** The names of the ops port in the configuration. */
export function opsHosts(config: Config): readonly string[] {
  return [config.PLEDGEVIEW_OPS_HOST, ...config.PLEDGEVIEW_OPS_HOSTS]
}

/** The server, not listening yet. */
export function createOpsServer(dependencies: OpsServerDependencies): FastifyInstance {
  const server = Fastify({ logger: false, exposeHeadRoutes: false })
  createConnections({ perAddressMax: connectionsPerAddressMax, isTrustedProxy: () => false }).listen(
    server.server,
  )

  server.setErrorHandler((error, _request, reply) => {
    reply.code(500).send({ error: messageOf(error) })
  })

  const answersFor = hostMatcher(dependencies.hosts)
  server.addHook('onRequest', async (request, reply) => {
    const { host } = request.headers
    if (answersFor(host)) return
    const name = JSON.stringify(hostOf(host ?? '') ?? host)
    const error = `this port does not answer for the name ${name}: call it by an IP address, or add the name to PLEDGEVIEW_OPS_HOSTS`
    return reply.code(421).send({ error })
  })

  server.get('/healthz', (_request, reply) => {
    const checks = dependencies.health()
    reply.code(allOk(checks) ? 200 : 503).send({ ok: allOk(checks), checks })
  })

  const readiness = kept(dependencies.readiness)
  const status = kept(dependencies.status)
  const scrape = kept(async () => {
    // A scrape returns the other metrics even if the source of the gauges does not answer.
    await within(answerMsMax, dependencies.beforeScrape()).catch(() => {})
    return dependencies.metrics.registry.metrics()
  })

  server.get('/readyz', async (_request, reply) => {
    const checks = await readiness()
    return reply.code(allOk(checks) ? 200 : 503).send({ ok: allOk(checks), checks })
  })

  server.get('/metrics', async (_request, reply) =>
    reply.type(dependencies.metrics.registry.contentType).send(await scrape()),
  )

  server.get('/status', status)

  return server
}

function allOk(checks: Record<string, Check>): boolean {
  return Object.values(checks).every(check => check.ok || check.isShared)
}

/*
 * Which names the ops port answers for. A web page can have its own name lead to a private address, and then read what
 * a browser there can reach (DNS rebinding). The browser still sends the page's name in `Host`. So only names that no
 * page can have are answered: addresses, the loopback's names, and the names in the configuration. Pure.
 */

/** The host in a `Host` header, without its port, in lower case; `undefined` if the header is not well-formed. */
export function hostOf(header: string): string | undefined {
  const [, bracketed, name] = /^(?:\[([\da-f:.]+)\]|([^\s:@/\\[\]]+))(?::\d{1,5})?$/i.exec(header) ?? []
  return (bracketed ?? name)?.toLowerCase().replace(/\.$/, '')
}

/** Whether a request is answered. Without a `Host` it is: every browser sends one, and some probes do not. */
function hostMatcher(names: readonly string[]): (header: string | undefined) => boolean {
  const allowed = new Set(['localhost', ...names.map(name => name.toLowerCase())])
  return header => {
    if (header === undefined) return true
    const host = hostOf(header)
    return host !== undefined && (isIP(host) !== 0 || allowed.has(host) || host.endsWith('.localhost'))
  }
}
