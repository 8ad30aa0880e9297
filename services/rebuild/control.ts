/** What can be done to a rebuild from outside: looked at, given up, and its previous generation dropped. */
import type { Sleep } from '../projector/sleep.ts'
import type { History } from '../shared/event-log/history.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { RebuildRefused } from './claim.ts'
import { dropShadow, hasShadow } from './generation.ts'
import {
  askToAbort,
  consumerOf,
  isAlive,
  isCommitted,
  isWorking,
  latestRebuild,
  type RebuildState,
  writeRebuild,
} from './rebuild-log.ts'

export interface ControlDependencies {
  tables: Tables
  databases: Databases
  history: History
  sleep: Sleep
}

const lookMs = 250
const abortMsMax = 60_000

/** The latest rebuild, and whether the generation before it is kept. `undefined` where there never was one. */
export async function rebuildStatus({
  tables,
  databases,
}: Pick<ControlDependencies, 'tables' | 'databases'>): Promise<
  (RebuildState & { isAlive: boolean; isPreviousKept: boolean }) | undefined
> {
  const state = await latestRebuild(tables, databases)
  if (!state) return undefined
  const isPreviousKept = state.phase === 'rebuilt' && (await hasShadow(tables, databases))
  return { ...state, isAlive: isAlive(state), isPreviousKept }
}

/**
 * Gives up the open rebuild: through the process that is at it, or, where that is dead, at once. Resolves when nothing is
 * left of it. Throws `RebuildRefused` where there is none, or it has begun to exchange.
 */
export async function abortRebuild(dependencies: ControlDependencies): Promise<RebuildState> {
  const { tables, databases, sleep } = dependencies
  const state = await latestRebuild(tables, databases)
  if (!state || !isWorking(state)) throw new RebuildRefused('there is no rebuild to give up')
  if (isCommitted(state)) {
    throw new RebuildRefused(
      'the rebuilt generation is being exchanged: let it end (run it again where it was killed), and then go back',
    )
  }
  await askToAbort(tables, databases, state.id)
  for (let waitedMs = 0; waitedMs < abortMsMax; waitedMs += lookMs) {
    const now = await latestRebuild(tables, databases)
    if (!now || now.id !== state.id || !isWorking(now)) return now ?? state
    if (isCommitted(now))
      throw new RebuildRefused('it came too late: the rebuilt generation is being exchanged')
    if (!isAlive(now)) return giveUp(dependencies, now)
    await sleep(lookMs)
  }
  throw new Error(`the process that rebuilds has not given up within ${abortMsMax / 1000} s`)
}

/** Leaves nothing of a rebuild. A way back leaves the generation that it would have gone to. */
export async function giveUp(
  { tables, databases, history }: ControlDependencies,
  state: Pick<RebuildState, 'id' | 'run' | 'detail'>,
): Promise<RebuildState> {
  const isBack = state.detail.request.kind === 'back'
  if (!isBack) await dropShadow(tables, databases)
  await history.forget(consumerOf(state.id))
  const detail = { ...state.detail, failure: null }
  const ended = { ...state, detail, phase: isBack ? 'rebuilt' : 'aborted' } as const
  await writeRebuild(tables, databases, ended)
  return { ...ended, writtenAt: '', ageMs: 0, isAborting: false }
}

/** Drops the generation before the last rebuild. Throws `RebuildRefused` where none is kept. */
export async function dropPrevious({
  tables,
  databases,
}: Pick<ControlDependencies, 'tables' | 'databases'>): Promise<void> {
  const state = await rebuildStatus({ tables, databases })
  if (!state?.isPreviousKept) throw new RebuildRefused('no generation from before a rebuild is kept')
  await dropShadow(tables, databases)
  await writeRebuild(tables, databases, { ...state, phase: 'dropped' })
}
