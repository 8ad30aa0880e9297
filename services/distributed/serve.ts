/** What the query service and the portal do alike as separate processes: they serve their port and the ops port until they are told to end. */
import { once } from 'node:events'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { closeServer, type Open } from '../runtime/async/closing.ts'
import type { Config } from '../runtime/config.ts'
import { type Check, shared, tablesCheck } from '../runtime/ops/checks.ts'
import type { Metrics } from '../runtime/ops/metrics.ts'
import { createOpsServer, opsHosts } from '../runtime/ops/ops-server.ts'
import type { Databases, Tables } from '../tables/port.ts'
import { readProjection, reportProjection } from '../tables/projector-stops.ts'

/** What a process of the distributed form is given. */
export interface Process {
  config: Config
  logger: Logger
  /** Ends it cleanly. */
  signal: AbortSignal
  /** Prints a line for the person who started it. */
  say: (text: string) => void
}

interface Served {
  service: 'query' | 'portal'
  app: FastifyInstance
  port: number
  tables: Tables
  databases: Databases
  metrics: Metrics
  /** Besides the tables. */
  readiness: () => Record<string, Check>
  status?: () => object
  /** What is said once both ports listen, from the address of the app. */
  readyText: (url: string) => string
}

/** Resolves when the signal has aborted. What serves is open then. */
export async function serve(
  open: Open,
  { config, signal, say }: Process,
  { service, app, port, tables, databases, metrics, readiness, status, readyText }: Served,
): Promise<void> {
  const ops = createOpsServer({
    hosts: opsHosts(config),
    health: () => ({ process: { ok: true, detail: 'runs' } }),
    readiness: async () => ({ ...readiness(), tables: shared(await tablesCheck(tables)) }),
    status: async () => ({
      ...{ service, ...status?.() },
      stopped: (await readProjection(tables, databases, config)).stopped,
    }),
    metrics,
    beforeScrape: async () => {
      const { ok } = await tablesCheck(tables)
      metrics.clickhouseUp.set(ok ? 1 : 0)
      if (ok) await reportProjection({ metrics, tables, databases, config })
    },
  })
  open({ close: () => closeServer(ops) })
  const url = await app.listen({ host: config.PLEDGEVIEW_HOST, port })
  const opsUrl = await ops.listen({ host: config.PLEDGEVIEW_OPS_HOST, port: config.PLEDGEVIEW_OPS_PORT })
  say(`${readyText(url)} (ops: ${opsUrl})`)
  if (!signal.aborted) await once(signal, 'abort')
}
