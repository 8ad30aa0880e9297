/**
 * The projector of the tables that are served, as each form of the service runs it: it begins at the positions that the tables have, follows
 * which generation is current, and gives the fold to a promotion.
 */
import type { EventReader } from '../log/port.ts'
import { createPositions, type Positions } from '../projector/positions/positions.ts'
import { noticeRestore } from '../projector/positions/restore.ts'
import {
  createProjectorService,
  type ProjectorService,
  type ProjectorServiceDependencies,
} from '../projector/service.ts'
import { createRuntime } from '../runtime/runtime.ts'
import { patientTables } from '../tables/clickhouse/patient.ts'
import { type FollowedDatabases, tablesOfCurrent } from '../tables/generation-log.ts'
import type { Shard } from '../tables/port.ts'
import { watchAttempts } from './attempts.ts'
import { type RebuildTables, showCurrent } from './context.ts'
import { rebuildUnderWay } from './rebuild-log.ts'

interface LivePositionsDependencies
  extends RebuildTables,
    Pick<ProjectorServiceDependencies, 'config' | 'logger'> {
  databases: FollowedDatabases
  /** Once it is aborted, finding the positions waits for ClickHouse no longer. */
  signal: AbortSignal
}

interface LiveProjectorDependencies
  extends LivePositionsDependencies,
    Pick<ProjectorServiceDependencies, 'hashBacker' | 'schemaRegistry' | 'run' | 'lastReadMs' | 'metrics'> {
  openReader: (starts: Positions) => Promise<EventReader>
}

/** It does not run yet. Its reader is open; the caller closes it. */
export async function openLiveProjector({
  openReader,
  signal,
  ...dependencies
}: LiveProjectorDependencies): Promise<ProjectorService> {
  const { tables, databases, cluster, logger, metrics } = dependencies
  const runtime = createRuntime(logger, metrics)
  const log = { tables, base: databases.base }
  const parts = cluster?.shards ?? [{ tables, databases }]
  const positions = createLivePositions({ ...dependencies, signal })
  return createProjectorService({
    ...dependencies,
    ...runtime,
    shards: parts,
    reader: await openReader(positions),
    positions,
    follow: stopping => databases.follow(tables, stopping),
    showViews: () => showCurrent(dependencies),
    isGivenUp: watchAttempts({ ...log, ...runtime, servers: parts.map(part => part.tables) }),
    rebuild: () => rebuildUnderWay(log),
  })
}

export function createLivePositions(dependencies: LivePositionsDependencies): Positions {
  const { tables, databases, cluster, config, logger, signal } = dependencies
  // Each statement waits for ClickHouse as a batch would: after a restore, finding the positions may need many.
  const patience = { retryMsMax: config.PLEDGEVIEW_RETRY_MS_MAX, signal }
  const follow = () => databases.follow(tables)
  const ofCurrent = (of: Shard): Shard => ({
    ...of,
    tables: tablesOfCurrent(patientTables(of.tables, patience), of.databases, follow),
  })
  return createPositions({
    databases,
    shards: (cluster?.shards ?? [{ tables, databases }]).map(ofCurrent),
    now: Date.now,
    warn: message => logger.warn(message),
    notice: (place, state) => noticeRestore({ ...ofCurrent({ tables, databases }), ...place }, state),
  })
}
