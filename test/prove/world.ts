/** Plays one world: a stage, faults that are drawn from the seed, and the verdict of the checker on everything that was answered. */
import { messageOf } from '../../services/runtime/message-of.ts'
import { appendedPoison, keptRejects, positionsAndEnds } from '../support/faults/log-checks.ts'
import { foldFaults, noFoldFaults } from '../support/projector/fold-records.ts'
import { pickWeighted, randomOf } from '../support/runner/random.ts'
import { check } from './checker/check.ts'
import type { Log, Violation } from './checker/log.ts'
import * as generationFaults from './faults/generation-faults.ts'
import * as portalFaults from './faults/portal-faults.ts'
import * as projectorFaults from './faults/projector-faults.ts'
import * as queryFaults from './faults/query-faults.ts'
import * as serviceFaults from './faults/service-faults.ts'
import * as shardFaults from './faults/shard-faults.ts'
import { openStage, type Stage } from './stage/stage.ts'
import { currentOf, until } from './stage/watch.ts'

type Fault = (stage: Stage) => Promise<void>

const { killClickHouse, silenceClickHouse, stopDuringFold, slowFold, ...ofServices } = serviceFaults
const { restartAll, useUntilRefused: _, ...ofQueries } = queryFaults
const anywhere: Readonly<Record<string, Fault>> = { ...projectorFaults, ...ofQueries, ...ofServices }
const onOneServer = {
  killClickHouse,
  silenceClickHouse,
  stopDuringFold,
  slowFold,
  ...generationFaults,
  ...portalFaults,
}
export const faults: Readonly<Record<string, Fault>> = { ...anywhere, ...onOneServer, ...shardFaults }

export interface WorldPlan {
  seed: string
  shards: number | undefined
  /** The names of the faults, in their order. */
  faults: readonly string[]
  /** Further settings, with which its projectors and query processes are started again before the faults. */
  settings?: Readonly<Record<string, string>>
}

export interface WorldOutcome {
  plan: WorldPlan
  log: Log
  violations: Violation[]
  /** Why it was not played to its end. */
  failure?: string
  /** How many entries of each kind the log has, and how many events were said. */
  counts: Readonly<Record<string, number>>
  seconds: number
}

/** Every third world is on two shards. */
export function drawPlan(seed: string, steps: number): WorldPlan {
  const random = randomOf(seed, 'plan')
  const shards = random() < 1 / 3 ? 2 : undefined
  const names = Object.keys({ ...anywhere, ...(shards ? shardFaults : onOneServer) })
  return {
    seed,
    shards,
    faults: Array.from({ length: steps }, () =>
      pickWeighted(
        random,
        names.map(name => [name, 1]),
      ),
    ),
  }
}

export interface Until {
  /** An abort ends the world early, with all of its processes. */
  signal?: AbortSignal
  /** It ends early once the checker finds a violation of this rule. */
  endsWith?: string
}

const lookMs = 3_000

export async function playWorld(
  plan: WorldPlan,
  onStep: (text: string) => void = () => {},
  { signal, endsWith }: Until = {},
): Promise<WorldOutcome> {
  const startedAt = performance.now()
  let stage: Stage | undefined
  let failure: string | undefined
  const ended = Promise.withResolvers<void>()
  const abort = () => ended.reject(signal?.reason)
  signal?.addEventListener('abort', abort)
  const looking = setInterval(() => {
    const found = stage && endsWith && check(stage.recorder.log).some(({ rule }) => rule === endsWith)
    if (found) ended.resolve()
  }, lookMs)
  try {
    const opened = await openStage(plan.seed, { shards: plan.shards })
    stage = opened
    const playing = playFaults(opened, plan, onStep)
    playing.catch(() => {})
    await Promise.race([playing, ended.promise])
  } catch (error) {
    failure = `${messageOf(error)} ${error instanceof Error && error.cause ? messageOf(error.cause) : ''}`
  } finally {
    clearInterval(looking)
    signal?.removeEventListener('abort', abort)
    await stage?.stop().catch(error => {
      failure ??= messageOf(error)
    })
  }
  const log = stage?.recorder.log ?? { rows: [], entries: [] }
  const seconds = (performance.now() - startedAt) / 1_000
  const counts: Record<string, number> = {}
  const count = (what: string, more: number) => {
    counts[what] = (counts[what] ?? 0) + more
  }
  for (const entry of log.entries) {
    count(entry.kind, 1)
    if (entry.kind === 'said') count('events', entry.events.length)
  }
  return {
    plan,
    log,
    violations: check(log),
    ...(failure !== undefined && { failure }),
    counts,
    seconds,
  }
}

async function playFaults(stage: Stage, plan: WorldPlan, onStep: (text: string) => void): Promise<void> {
  if (plan.settings) await restartAll(stage, plan.settings)
  for (const [step, name] of plan.faults.entries()) {
    onStep(`${name}, ${step + 1} of ${plan.faults.length}`)
    const fault = faults[name]
    if (!fault) throw new Error(`there is no fault ${name}; there are: ${Object.keys(faults).join(', ')}`)
    await stage.play(() => fault(stage))
  }
  onStep('the end')
  await end(stage)
}

/** What has to hold when nothing is said any more. */
async function end(stage: Stage): Promise<void> {
  const { mirrors, recorder, services, tables, folded, traffic } = stage
  await stage.settled({ staysPaused: true })
  const settledAt = Date.now()
  await until(() => mirrors.every(mirror => mirror.isPast(settledAt)))
  for (const mirror of mirrors) {
    await mirror.stop()
    recorder.add({
      kind: 'copy',
      mirror: mirror.name,
      rows: [...mirror.copy().values()].map(recorder.numberOf),
    })
  }
  await stage.noteBroken()
  const { kafka } = services.addresses
  const [kept, appended] = [await keptRejects(stage), await appendedPoison(kafka, traffic.poisoned())]
  if (JSON.stringify(Object.entries(kept).toSorted()) !== JSON.stringify(Object.entries(appended).toSorted()))
    throw new Error(
      `of ${Object.keys(appended).length} records that are no events, ${Object.keys(kept).length} are among the rejects`,
    )
  await until(async () => {
    const { positions, ends } = await positionsAndEnds(kafka)
    return Object.entries(ends).every(([name, offset]) => positions[name] === offset)
  })
  // A rebuild takes epochs above those of the generation from before.
  const current = await currentOf(tables)
  for (const shard of folded) {
    const found = { ...(await foldFaults(shard.tables, current)), epochs: [] }
    if (JSON.stringify(found) !== JSON.stringify(noFoldFaults))
      throw new Error(`folds: ${JSON.stringify(found)}`)
  }
}
