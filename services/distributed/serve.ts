/** What the query service and the portal do alike as separate processes: they serve their port and the ops port until they are told to end. */
import type { FastifyInstance } from 'fastify'
import { closeServer, type Open } from '../runtime/async/closing.ts'
import type { Config } from '../runtime/config.ts'
import { type Check, shared, tablesCheck } from '../runtime/ops/checks.ts'
import type { Metrics } from '../runtime/ops/metrics.ts'
import { createOpsServer, opsHosts } from '../runtime/ops/ops-server.ts'
import type { Databases, Tables } from '../tables/port.ts'
import { readProjection, reportProjection } from '../tables/projector-stops.ts'

export interface Served {
  service: 'query' | 'portal'
  config: Config
  app: FastifyInstance
  port: number
  tables: Tables
  databases: Databases
  metrics: Metrics
  /** Besides the tables. */
  readiness: () => Record<string, Check>
  status?: () => object
  /** Ends it. */
  signal: AbortSignal
  /** Called once both ports listen, with their addresses. */
  onReady: (url: string, opsUrl: string) => void
}

// A scrape is answered without its gauges after three seconds.
const scrapeMsMax = 2_000

/** Resolves when the signal has aborted. What serves is open then. */
export async function serve(
  open: Open,
  { service, config, app, port, tables, databases, metrics, readiness, status, signal, onReady }: Served,
): Promise<void> {
  const ops = createOpsServer({
    hosts: opsHosts(config),
    health: () => ({ process: { ok: true, detail: 'runs' } }),
    readiness: async () => ({ ...readiness(), tables: shared(await tablesCheck(tables)) }),
    status: async () => ({
      ...{ service, ...status?.() },
      stopped: (await readProjection(tables, databases)).stopped,
    }),
    metrics,
    beforeScrape: async () => {
      const { ok } = await tablesCheck(tables, scrapeMsMax)
      metrics.clickhouseUp.set(ok ? 1 : 0)
      if (ok) await reportProjection({ metrics, tables, databases })
    },
  })
  open({ close: () => closeServer(ops) })
  const url = await app.listen({ host: config.PLEDGEVIEW_HOST, port })
  const opsUrl = await ops.listen({ host: config.PLEDGEVIEW_OPS_HOST, port: config.PLEDGEVIEW_OPS_PORT })
  onReady(url, opsUrl)
  if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
}
