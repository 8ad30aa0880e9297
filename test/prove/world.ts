/** Plays one world: a stage, faults that are drawn from the seed, and the verdict of the checker on everything that was answered. */
import { once } from 'node:events'
import { isDeepStrictEqual } from 'node:util'
import { within } from '../../services/runtime/async/sleep.ts'
import { messageOf } from '../../services/runtime/message-of.ts'
import { appendedPoison, keptPoison, positionsAndEnds } from '../support/faults/log-checks.ts'
import { foldFaults, noFoldFaults } from '../support/projector/fold-records.ts'
import { pick, randomOf } from '../support/runner/random.ts'
import { check } from './checker/check.ts'
import type { Entry, Log, Violation } from './checker/log.ts'
import * as ofClickHouse from './faults/clickhouse-faults.ts'
import * as ofGenerations from './faults/generation-faults.ts'
import * as ofPortal from './faults/portal-faults.ts'
import * as ofProjectors from './faults/projector-faults.ts'
import * as ofQueries from './faults/query-faults.ts'
import * as ofServices from './faults/service-faults.ts'
import * as ofShards from './faults/shard-faults.ts'
import { rowOf } from './stage/recorder.ts'
import { openStage, type Stage } from './stage/stage.ts'
import { currentOf, holdsMsMax, until, untilReady } from './stage/watch.ts'

type Faults = Readonly<Record<string, (stage: Stage) => Promise<void>>>

const anywhere: Faults = { ...ofProjectors, ...ofQueries, ...ofServices }
const onOneServer: Faults = { ...ofClickHouse, ...ofGenerations, ...ofPortal }
const onShards: Faults = ofShards
const faults: Faults = { ...anywhere, ...onOneServer, ...onShards }

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
  failure: string | undefined
  /** How many entries of each kind the log has, and how many events were said. */
  counts: Readonly<Record<string, number>>
  seconds: number
}

/** Every third world is on two shards. */
export function drawPlan(seed: string, steps: number): WorldPlan {
  const random = randomOf(seed, 'plan')
  const shards = random() < 1 / 3 ? 2 : undefined
  const names = Object.keys({ ...anywhere, ...(shards ? onShards : onOneServer) })
  return { seed, shards, faults: Array.from({ length: steps }, () => pick(random, names)) }
}

export interface Until {
  /** An abort ends the world early, with all of its processes. */
  signal?: AbortSignal | undefined
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
  const log: Entry[] = []
  let stage: Stage | undefined
  let failure: string | undefined
  const found = new AbortController()
  const ended = once(AbortSignal.any([found.signal, ...(signal ? [signal] : [])]), 'abort')
  const looking = setInterval(() => {
    if (endsWith && check(log).some(({ rule }) => rule === endsWith)) found.abort()
  }, lookMs)
  try {
    stage = await openStage(plan.seed, log, plan)
    const playing = playFaults(stage, plan, onStep)
    playing.catch(() => {})
    await Promise.race([playing, ended])
  } catch (error) {
    failure = `${messageOf(error)} ${error instanceof Error && error.cause ? messageOf(error.cause) : ''}`
  } finally {
    clearInterval(looking)
    await stage?.stop().catch(error => {
      failure ??= messageOf(error)
    })
  }
  const seconds = (performance.now() - startedAt) / 1_000
  const events = log.flatMap(entry => (entry.kind === 'said' ? entry.events : []))
  const counts = { ...countsOf(log.map(({ kind }) => kind)), events: events.length }
  return { plan, log, violations: check(log), failure, counts, seconds }
}

/** How often each of these names is there. */
export function countsOf(names: readonly string[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(names, name => name)].map(([name, all]) => [name, all.length]))
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

/** All processes, with further settings. */
async function restartAll(stage: Stage, settings: Readonly<Record<string, string>>): Promise<void> {
  const { places, queries, recorder } = stage
  await recorder.disturbed('silence', async () => {
    for (const place of [...places, ...queries]) await place.restart(settings)
    for (const place of queries) await untilReady(place)
  })
  await stage.untilAllMove()
}

/** What has to hold when nothing is said any more. */
async function end(stage: Stage): Promise<void> {
  const { mirrors, recorder, services, tables, databases, folded, traffic } = stage
  await stage.settled({ staysPaused: true })
  const settledAt = Date.now()
  await within(holdsMsMax, Promise.all(mirrors.map(mirror => mirror.follow(settledAt))))
  for (const { name, copy } of mirrors)
    recorder.add({ kind: 'copy', mirror: name, rows: [...copy().values()].map(rowOf) })
  await stage.noteBroken()
  const { kafka } = services.addresses
  const [kept, appended] = [
    await keptPoison(tables, databases),
    await appendedPoison(kafka, traffic.poisoned()),
  ]
  if (!isDeepStrictEqual(kept, appended))
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
    if (!isDeepStrictEqual(found, noFoldFaults)) throw new Error(`folds: ${JSON.stringify(found)}`)
  }
}
