/**
 * The embedded service: the read model, the API, the portal and the ops port, in one process.
 *
 * If the projector stops (too many rejects, a table that does not answer), the API still answers from the tables, and both
 * probes of the ops port report why they no longer change.
 */
import { lagRecords } from '../log/port.ts'
import type { Mail } from '../portal/ports.ts'
import { untilFolded, untilProjected } from '../projector/positions/until-projected.ts'
import { statusOf } from '../projector/status.ts'
import { configuredAddresses, startQueryService } from '../query/service.ts'
import { memoryState } from '../query/shared-state.ts'
import { closeServer, opened } from '../runtime/async/closing.ts'
import { keysCheck, lagCheck, loopCheck, projectorCheck, tablesCheck } from '../runtime/ops/checks.ts'
import { createMetrics } from '../runtime/ops/metrics.ts'
import { createOpsServer, opsHosts } from '../runtime/ops/ops-server.ts'
import { serviceAddress } from './data-directory.ts'
import { type EmbeddedModel, openEmbeddedModel } from './model.ts'
import { startEmbeddedPortal } from './portal.ts'
import type { EmbeddedTablesOptions } from './tables.ts'

interface EmbeddedServiceOptions extends EmbeddedTablesOptions {
  /** 0 takes a free port. */
  port: number
  /** Without it, there is no portal. */
  portal?: { port: number; showMail: (mail: Mail) => void } | undefined
  opsPort: number
  /** Once it is aborted, the start no longer waits for the projector. */
  signal?: AbortSignal
}

export type EmbeddedService = Awaited<ReturnType<typeof startEmbeddedService>>

/** Starts everything. Both ports listen when it resolves. If one part fails, it closes the others and throws. */
export function startEmbeddedService(options: EmbeddedServiceOptions) {
  const { directory, config, logger } = options
  return opened(async open => {
    const metrics = createMetrics()
    const model = open(await openEmbeddedModel({ ...options, metrics }))
    const { tables, databases, projector } = model
    await caughtUp(model, options)
    // What is not configured is known once the ports listen.
    const addresses = configuredAddresses(config)
    const query = open(
      await startQueryService({
        ...{ tables, databases, config, metrics, logger },
        keyPepper: model.secrets.keyPepper,
        state: memoryState(config),
        addresses: () => addresses,
      }),
    )
    const apiUrl = await query.app.listen({ host: config.PLEDGEVIEW_HOST, port: options.port })
    addresses.apiUrl ??= `${apiUrl}/api/v1`
    if (options.portal) {
      open(
        await startEmbeddedPortal({
          ...{ model, directory, config, logger, metrics },
          ...options.portal,
          // The API's answers lead to it.
          onAddress(url) {
            addresses.portalUrl = url
          },
          apiUrl: addresses.apiUrl,
        }),
      )
    }
    const ops = createOpsServer({
      hosts: opsHosts(config),
      health: () => ({ loop: loopCheck(projector.health()) }),
      readiness: async () => ({
        projector: projectorCheck(projector.health().failure),
        lag: lagCheck(await projector.lag(), config.PLEDGEVIEW_LAG_RECORDS_MAX),
        keys: keysCheck(query.keyRing),
        tables: await tablesCheck(tables),
      }),
      status: () => statusOf(model),
      metrics,
      beforeScrape: projector.beforeScrape,
    })
    open({ close: () => closeServer(ops) })
    const opsUrl = await ops.listen({ host: config.PLEDGEVIEW_OPS_HOST, port: options.opsPort })

    const port = Number(new URL(apiUrl).port)
    const { url, user, password } = model.clickHouse
    const clickhouse = { url, user, password }
    serviceAddress.write(directory, { pid: process.pid, port, ops_url: opsUrl, clickhouse })
    open({ close: () => serviceAddress.remove(directory) })
    return {
      model,
      /** `http://host:port/api/v1` */
      apiUrl: `${apiUrl}/api/v1`,
      /** What people open; `undefined` without a portal. */
      portalUrl: options.portal && addresses.portalUrl,
      opsUrl,
    }
  })
}

/**
 * Waits until the tables have what is in the journal now. Tables that are behind it, such as restored or new ones, lack campaigns, show those
 * that were deleted since, and accept keys that were revoked since. If the projector stops, the wait ends: the API serves what is there.
 */
async function caughtUp(model: EmbeddedModel, { signal, logger }: EmbeddedServiceOptions): Promise<void> {
  const { lag } = model.projector
  const records = lagRecords(await lag())
  if (records === 0) return
  logger.warn({ records }, 'the API opens when these records of the journal are in the tables')
  const ended = new AbortController()
  void model.stopped.then(() => ended.abort())
  const time = { signal: signal ? AbortSignal.any([signal, ended.signal]) : ended.signal }
  const bounds = { msMax: Number.POSITIVE_INFINITY, wayOn: '' }
  const isOver = (error: Error) => {
    if (!time.signal.aborted) throw error
  }
  await untilProjected(lag, bounds, time)
    .then(() => untilFolded(model, bounds, time))
    .catch(isOver)
}
