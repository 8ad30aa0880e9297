/** The fold worker of the shadow tables. */
import {
  createFoldWorker,
  type FoldWorker,
  type FoldWorkerSettings,
} from '../../projector/fold/fold-worker.ts'
import { untilNoFoldRuns } from '../../projector/fold/running-folds.ts'
import type { Sleep } from '../../runtime/sleep.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { highestEpoch } from '../swap/held-fold.ts'
import { shadowOf } from './shadow-tables.ts'

export interface ShadowFoldDependencies {
  tables: Tables
  /** The live ones. */
  databases: Databases
  settings: FoldWorkerSettings
  /** Names this run; unique. */
  run: string
  monotonicMs: () => number
  sleep: Sleep
  random: () => number
}

// Nothing reads the shadow tables, so their statements may take long.
const foldMsMax = 30 * 60_000

export function createShadowFoldWorker({
  tables,
  databases,
  settings,
  run,
  ...rest
}: ShadowFoldDependencies): FoldWorker {
  const shadow = shadowOf(databases)
  return createFoldWorker({
    ...rest,
    tables,
    databases: shadow,
    holder: run,
    settings: { ...settings, foldMsMax },
    untilNoneRuns: () => untilNoFoldRuns(tables, shadow, { msMax: foldMsMax, ...rest }),
    epochFloor: () => highestEpoch(tables, databases),
    liveModel: databases.model,
  })
}
