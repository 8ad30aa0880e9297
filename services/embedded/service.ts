/**
 * The embedded service: the read model, the API, the portal and the ops port, in one process.
 *
 * If the projector stops (too many rejects, a table that does not answer), the API still answers from the tables, and both
 * probes of the ops port report why they no longer change.
 */
import { journalName } from '../log/local/journal.ts'
import { lagRecords } from '../log/port.ts'
import type { Mail } from '../portal/ports.ts'
import { readPositions } from '../projector/positions/positions.ts'
import { isBeingRestored } from '../projector/positions/restore.ts'
import { NotProjected } from '../projector/positions/until-projected.ts'
import { statusOf } from '../projector/status.ts'
import { configuredAddresses, startQueryService } from '../query/service.ts'
import { memoryState } from '../query/shared-state.ts'
import { closeServer, opened } from '../runtime/async/closing.ts'
import { retry } from '../runtime/async/retry.ts'
import { keysCheck, lagCheck, loopCheck, projectorCheck, tablesCheck } from '../runtime/ops/checks.ts'
import { createMetrics } from '../runtime/ops/metrics.ts'
import { createOpsServer, opsHosts } from '../runtime/ops/ops-server.ts'
import { TablesError } from '../tables/port.ts'
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
const backlogMsMax = 10_000

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
 * Waits until the tables have what the journal has. Tables that were put back from a copy, or are new, show what was deleted since, lack
 * campaigns, and accept keys that were revoked since. For other tables it waits a short time only: they are as current as when they were stopped.
 * If the projector stops, the API serves what is there. Throws the signal's reason.
 */
async function untilCaughtUp(
  { tables, databases, projector }: EmbeddedModel,
  { signal, logger }: EmbeddedServiceOptions,
): Promise<void> {
  const waiting = async () => lagRecords(await projector.lag())
  const isRestored = await isBeingRestored({ tables, databases }, journalName)
  if (!isRestored && (await waiting()) === 0) return
  const { ofLog } = await readPositions([{ tables, databases }], journalName)
  const wentBack = isRestored || ofLog.size === 0
  // While ClickHouse is away, the projector waits for it, too.
  const isRetryable = (error: unknown) =>
    error instanceof NotProjected || (error instanceof TablesError && error.retryable)
  async function look(): Promise<void> {
    if (projector.health().failure !== undefined || (await projector.isDrained())) return
    const records = await waiting()
    throw new NotProjected(`the API opens when the tables have what the journal has: ${records} records wait`)
  }
  const policy = {
    ...{ isRetryable, msMax: wentBack ? Number.POSITIVE_INFINITY : backlogMsMax },
    ...{ pauseMsMin: 50, pauseMsMax: 4_000 },
    onRetry: ({ message }: Error) => (wentBack ? logger.warn(message) : logger.info(message)),
  }
  await retry(look, policy, { signal }).catch((error: unknown) => {
    signal?.throwIfAborted()
    if (wentBack || !isRetryable(error)) throw error
  })
}
