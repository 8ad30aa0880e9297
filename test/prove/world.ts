/** Plays one world: a stage, faults that are drawn from the seed, and the verdict of the checker on everything that was answered. */
import { once } from 'node:events'
import { isDeepStrictEqual } from 'node:util'
import { within } from '../../services/runtime/async/sleep.ts'
import { messageOf } from '../../services/runtime/message-of.ts'
import { foldFaults, noFoldFaults } from '../support/projector/fold-records.ts'
import { keptRejects } from '../support/projector/reject-filters.ts'
import { pick, randomOf } from '../support/runner/random.ts'
import { check } from './checker/check.ts'
import { wholesOf } from './checker/lists.ts'
import type { Entry, Log, Violation } from './checker/log.ts'
import { ofOneServer, ofShards } from './faults/clickhouse-faults.ts'
import * as ofGenerations from './faults/generation-faults.ts'
import * as ofKeys from './faults/key-faults.ts'
import * as ofProjectors from './faults/projector-faults.ts'
import * as ofQueries from './faults/query-faults.ts'
import type { Mirror } from './stage/readers.ts'
import { rowOf } from './stage/recorder.ts'
import { openStage, type Stage, type StageOptions } from './stage/stage.ts'
import { brokenIn, currentOf, holdsMsMax, positionsAndEnds, until } from './stage/watch.ts'

type Faults = Readonly<Record<string, (stage: Stage) => Promise<void>>>

const anywhere: Faults = { ...ofProjectors, ...ofQueries, ...ofKeys }
const onOneServer: Faults = { ...ofOneServer, ...ofGenerations }
const faults: Faults = { ...anywhere, ...onOneServer, ...ofShards }

export interface WorldPlan extends StageOptions {
  seed: string
  /** The names of the faults, in their order. */
  faults: readonly string[]
}

export interface WorldOutcome {
  plan: WorldPlan
  log: Log
  /** The faults that were played to their end, with the quiet time after each. */
  played: readonly string[]
  violations: Violation[]
  /** Why it was not played to its end. */
  failure: string | undefined
  /** How many entries of each kind the log has, how many events were said, and how many lists had several pages. */
  counts: Readonly<Record<string, number>>
  seconds: number
}

/** Every third world is on two shards. */
export function drawPlan(seed: string, steps: number): WorldPlan {
  const random = randomOf(seed, 'plan')
  const shards = random() < 1 / 3 ? 2 : undefined
  const names = Object.keys({ ...anywhere, ...(shards ? ofShards : onOneServer) })
  return { seed, shards, faults: Array.from({ length: steps }, () => pick(random, names)) }
}

/** It ends early, with all of its processes, once it is aborted. */
export async function playWorld(
  plan: WorldPlan,
  onStep: (text: string) => void = () => {},
  signal = new AbortController().signal,
): Promise<WorldOutcome> {
  const startedAt = performance.now()
  const log: Entry[] = []
  const played: string[] = []
  const closing = new AsyncDisposableStack()
  let failure: string | undefined
  const ended = once(signal, 'abort')
  try {
    const stage = await openStage(closing, plan.seed, log, plan)
    const playing = play(stage, plan.faults, onStep, played)
    playing.catch(() => {})
    await Promise.race([playing, ended])
  } catch (error) {
    failure = `${messageOf(error)} ${error instanceof Error && error.cause ? messageOf(error.cause) : ''}`
  }
  await closing.disposeAsync().catch(error => {
    failure ??= messageOf(error)
  })
  const seconds = (performance.now() - startedAt) / 1_000
  const events = log.flatMap(entry => (entry.kind === 'said' ? entry.events : []))
  const violations = check(log)
  const answers = log.filter(entry => entry.kind === 'answer')
  const lists = wholesOf(answers).filter(({ pages }) => pages.length > 1).length
  const counts = { ...countsOf(log.map(({ kind }) => kind)), events: events.length, lists }
  return { plan, log, played, violations, failure, counts, seconds }
}

/** How often each of these names is there. */
export function countsOf(names: readonly string[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(names, name => name)].map(([name, all]) => [name, all.length]))
}

async function play(
  stage: Stage,
  names: readonly string[],
  onStep: (text: string) => void,
  played: string[],
): Promise<void> {
  const mirrors = await stage.start()
  for (const [step, name] of names.entries()) {
    onStep(`${name}, ${step + 1} of ${names.length}`)
    const fault = faults[name]
    if (!fault) throw new Error(`there is no fault ${name}; there are: ${Object.keys(faults).join(', ')}`)
    await stage.play(() => fault(stage))
    played.push(name)
  }
  onStep('the end')
  await stage.settled(() => checkEnd(stage, mirrors))
}

const base64 = (value: Uint8Array | null) => Buffer.from(value ?? []).toString('base64')

/** What has to hold when nothing is said any more. */
async function checkEnd(stage: Stage, mirrors: readonly Mirror[]): Promise<void> {
  const { recorder, services, tables, databases, folded, traffic } = stage
  await traffic.stop()
  const settledAt = Date.now()
  await within(holdsMsMax, Promise.all(mirrors.map(mirror => mirror.follow(settledAt))))
  for (const { name, copy } of mirrors)
    recorder.add({ kind: 'copy', mirror: name, rows: [...copy().values()].map(rowOf) })
  for (const [process, place] of Object.entries(stage.processes))
    recorder.add({ kind: 'broken', process, names: await brokenIn(place) })
  const { kafka } = services.addresses
  // If its append was repeated, a record is at two places in the log, and so among the rejects.
  const kept = new Set((await keptRejects(tables, databases)).map(({ record }) => base64(record.value)))
  if (!isDeepStrictEqual(kept, new Set(traffic.poisoned().map(base64))))
    throw new Error(`not every record that is no event is among the ${kept.size} rejects`)
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
