/**
 * The embedded service: the read model, the API, the portal and the ops port, in one process.
 *
 * If the projector stops (too many rejects, a table that does not answer), the API still answers from the tables, and both
 * probes of the ops port report why they no longer change.
 */
import { journalName } from '../log/local/journal.ts'
import { lagRecords } from '../log/port.ts'
import type { Mail } from '../portal/ports.ts'
import { isBeingRestored } from '../projector/positions/restore.ts'
import { NotProjected, untilFolded, untilProjected } from '../projector/positions/until-projected.ts'
import { statusOf } from '../projector/status.ts'
import { configuredAddresses, startQueryService } from '../query/service.ts'
import { memoryState } from '../query/shared-state.ts'
import { closeServer, opened } from '../runtime/async/closing.ts'
import { keysCheck, lagCheck, loopCheck, projectorCheck, tablesCheck } from '../runtime/ops/checks.ts'
import { createMetrics } from '../runtime/ops/metrics.ts'
import { createOpsServer, opsHosts } from '../runtime/ops/ops-server.ts'
import { patientTables } from '../tables/clickhouse/patient.ts'
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
  /** Once it is aborted, a start that waits for the projector ends. */
  signal?: AbortSignal
}

// How long a start waits for an ordinary backlog.
const backlogMsMax = 60_000

export type EmbeddedService = Awaited<ReturnType<typeof startEmbeddedService>>

/** Starts everything. All ports listen when it resolves. If one part fails, it closes the others and throws. */
export function startEmbeddedService(options: EmbeddedServiceOptions) {
  const { directory, config, logger } = options
  return opened(async open => {
    const metrics = createMetrics()
    const model = open(await openEmbeddedModel({ ...options, metrics }))
    const { tables, databases, projector } = model
    let query: Awaited<ReturnType<typeof startQueryService>> | undefined
    // It tells how far a start is that waits.
    const ops = createOpsServer({
      hosts: opsHosts(config),
      health: () => ({ loop: loopCheck(projector.health()) }),
      readiness: async () => ({
        projector: projectorCheck(projector.health().failure),
        lag: lagCheck(await projector.lag(), config.PLEDGEVIEW_LAG_RECORDS_MAX),
        keys: query ? keysCheck(query.keyRing) : { ok: false, detail: 'the API is not open yet' },
        tables: await tablesCheck(tables),
      }),
      status: () => statusOf(model),
      metrics,
      beforeScrape: projector.beforeScrape,
    })
    open({ close: () => closeServer(ops) })
    const opsUrl = await ops.listen({ host: config.PLEDGEVIEW_OPS_HOST, port: options.opsPort })
    const { url, user, password } = model.clickHouse
    const announce = (port: number) =>
      serviceAddress.write(directory, {
        ...{ pid: process.pid, port, ops_url: opsUrl, clickhouse: { url, user, password } },
      })
    const forgetAddress = () => serviceAddress.remove(directory)
    announce(options.port)
    open({ close: forgetAddress })

    await untilCaughtUp(model, options)
    // What is not configured is known once the ports listen.
    const addresses = configuredAddresses(config)
    query = open(
      await startQueryService({
        ...{ tables, databases, config, metrics, logger },
        keyPepper: model.secrets.keyPepper,
        state: memoryState(config),
        addresses: () => addresses,
      }),
    )
    const apiUrl = await query.app.listen({ host: config.PLEDGEVIEW_HOST, port: options.port })
    announce(Number(new URL(apiUrl).port))
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
    // Before anything else closes: commands that come then wait for the end.
    open({ close: forgetAddress })
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
 * Waits until the tables have what the journal has now. Tables that were put back from a copy, or are new, show what was deleted since, lack
 * campaigns, and accept keys that were revoked since. For other tables it waits a minute at most: they are as current as when they were stopped.
 * If the projector stops, the API serves what is there. Rejects with the signal's reason.
 */
async function untilCaughtUp(
  { tables, databases, projector, areNew, stopped }: EmbeddedModel,
  { config, signal, logger }: EmbeddedServiceOptions,
): Promise<void> {
  const patience = { retryMsMax: config.PLEDGEVIEW_RETRY_MS_MAX, ...(signal && { signal }) }
  const place = { tables: patientTables(tables, patience), databases }
  const isRestored = await isBeingRestored(place, journalName)
  const records = lagRecords(await projector.lag())
  if (!isRestored && records === 0) return
  const wentBack = isRestored || areNew
  logger[wentBack ? 'warn' : 'info']({ records }, 'the API opens when these records are in the tables')
  const hasStopped = new AbortController()
  void stopped.then(() => hasStopped.abort())
  const ends = [hasStopped.signal, ...(signal ? [signal] : [])]
  const time = { signal: AbortSignal.any(wentBack ? ends : [...ends, AbortSignal.timeout(backlogMsMax)]) }
  const bounds = { msMax: Number.POSITIVE_INFINITY, wayOn: '' }
  await untilProjected(projector.lag, bounds, time)
    .then(() => untilFolded(place, bounds, time))
    .catch((error: unknown) => {
      signal?.throwIfAborted()
      if (!(error instanceof NotProjected) && !hasStopped.signal.aborted) throw error
    })
}
