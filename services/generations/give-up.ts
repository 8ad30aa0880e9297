/** Gives up what a rebuild has made and not promoted. */
import type { History } from '../log/port.ts'
import { type LogPlace, noteDropped } from './attempts.ts'
import { dropDatabases, type RebuildTables } from './cluster.ts'
import { consumerOf, type RebuildState, writeRebuild } from './rebuild-log.ts'

export interface GiveUpDependencies extends RebuildTables {
  log: LogPlace
  history: Pick<History, 'forget'>
  run: string
}

type Built = Pick<RebuildState, 'attempt' | 'generation' | 'detail'>

/** Removes the new generation. The one that a rollback would return to stays. */
export async function removeBuilt(
  { log, history, run, ...place }: GiveUpDependencies,
  { attempt, generation, detail }: Built,
): Promise<void> {
  await history.forget(consumerOf({ generation }))
  if (detail.request.kind === 'rollback') return
  await noteDropped(log, { attempt, run, generation })
  await dropDatabases(place, generation)
}

/** Removes it, and records that the rebuild was given up. */
export async function endAborted(
  dependencies: GiveUpDependencies,
  state: Built & Pick<RebuildState, 'id'>,
): Promise<void> {
  await removeBuilt(dependencies, state)
  const phase = state.detail.request.kind === 'rollback' ? 'rebuilt' : 'aborted'
  const detail = { ...state.detail, failure: null }
  await writeRebuild(dependencies.log, { ...state, run: dependencies.run, phase, detail })
}
