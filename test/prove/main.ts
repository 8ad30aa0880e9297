/**
 * `npm run prove [-- --minutes N] [--seed S] [--mutants] [--world N] [--log FILE]`: tries to break what Pledgeview promises, and says what came of it.
 *
 * A fifth of the time it plays worlds of the simulation, with new seeds. Then it plays worlds of real processes under faults that are
 * drawn from the seed, and checks every answer that any reader got. A failure prints the seed, the shortest history that shows it, and the
 * command that plays it again; the exit code is 1. `--mutants` first plays worlds of programs without a safeguard, which the checker has to
 * find. `--world` plays that world alone. `--log` checks a log that was kept. Without these two, the report is written to test/PROOF.md.
 */
import { randomInt } from 'node:crypto'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createPaintedLine } from '../../services/runtime/progress.ts'
import { localServices } from '../support/deployment/local-services.ts'
import { withLosses } from '../support/simulation/seeds.ts'
import { check, shortest } from './checker/check.ts'
import type { Log, Violation } from './checker/log.ts'
import { tryLogMutants } from './checker/mutants.ts'
import { realMutants, type Tried, tryMutant } from './real-mutants.ts'
import { writeReport } from './report.ts'
import { type Simulated, simulate } from './simulated.ts'
import { drawPlan, playWorld, type WorldOutcome } from './world.ts'

const stepsOfWorld = 5
const simulatedShare = 0.2
const shownMax = 3

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '3' },
    seed: { type: 'string' },
    world: { type: 'string' },
    log: { type: 'string' },
    mutants: { type: 'boolean', default: false },
  },
})
const seed = values.seed ?? String(randomInt(1, 1_000_000_000))
const startedAt = performance.now()
const playMs = 60_000 * Number(values.minutes)
const line = createPaintedLine({ stream: process.stderr })
const stopping = new AbortController()
const { signal } = stopping
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopping.abort(name))

process.exitCode = values.log ? checkAgain(values.log) : await prove()
process.exit()

async function prove(): Promise<number> {
  const requirement = await localServices()
  if (!requirement.isMet) {
    console.error(`this cannot run here: ${requirement.reason}`)
    return 2
  }
  console.log(`seed ${seed}, ${values.minutes} minutes`)
  const logMutants = tryLogMutants()
  for (const { rule, without } of logMutants.filter(({ isFound }) => !isFound))
    console.error(`the checker does not find it (${rule}): ${without}`)
  const tried = values.mutants ? await tryMutants() : []
  // Mutants are played before.
  const playedFrom = performance.now()
  const simulated = values.world ? [] : await simulateUntil(playedFrom + simulatedShare * playMs)
  const worlds: WorldOutcome[] = []
  for (let world = Number(values.world ?? 1); !signal.aborted; world++) {
    const outcome = await playOne(world)
    if (signal.aborted) break
    // Its log is large, and is not needed any more.
    worlds.push({ ...outcome, log: [] })
    if (values.world || performance.now() > playedFrom + playMs) break
  }
  if (!values.world) {
    const summary = writeReport({ seed, simulated, worlds, logMutants, tried, minutes: minutes() })
    console.log(`${summary}\nThe report is in test/PROOF.md.`)
  }
  const isWhole =
    [...logMutants, ...tried].every(({ isFound }) => isFound) &&
    withLosses(simulated).length === 0 &&
    worlds.every(({ violations, failure }) => violations.length === 0 && failure === undefined)
  return isWhole ? 0 : 1
}

async function tryMutants(): Promise<Tried[]> {
  const tried: Tried[] = []
  for (const [n, mutant] of realMutants.entries()) {
    if (signal.aborted) break
    const { without } = mutant
    const onStep = (text: string) => line.paint(() => `without ${without}: ${text}; ${minutes()} min`)
    const one = await tryMutant(mutant, `${seed}.mutant.${n + 1}`, onStep, signal)
    tried.push(one)
    line.wipe()
    const said = one.isFound ? `${one.rule}: ${one.said}` : `NOT FOUND ${one.said}`
    console.log(`${Math.round(one.seconds)} s without ${without}: ${said}`)
  }
  return tried
}

async function simulateUntil(moment: number): Promise<Simulated[]> {
  const outcomes: Simulated[] = []
  for (let n = 0; (n === 0 || performance.now() < moment) && !signal.aborted; n++) {
    // Far from the seeds that CI plays.
    const one = 1_000_000 + 1_000 * Number(seed) + n
    line.paint(() => `simulated world ${one}: ${n} done, ${minutes()} min`)
    const outcome = await simulate(one, { usesIndex: n % 2 === 0, hasReplicas: n % 5 === 0 })
    outcomes.push(outcome)
    if (withLosses([outcome]).length === 0) continue
    line.wipe()
    console.error(
      `${JSON.stringify([...outcome.losses, ...outcome.violations].slice(0, shownMax))}\nPlay it again:\n  SIMULATION_SEED=${one} npx vitest run --config test/vitest.config.ts test/simulation/mirrors.test.ts`,
    )
  }
  line.wipe()
  return outcomes
}

/** Plays a world of real processes, and says what came of it. */
async function playOne(world: number): Promise<WorldOutcome> {
  const plan = drawPlan(`${seed}.${world}`, stepsOfWorld)
  const onStep = (text: string) => {
    if (!process.stderr.isTTY) console.log(`world ${world}: ${text}`)
    line.paint(() => `world ${world} on ${plan.shards ?? 'no'} shards: ${text}; ${minutes()} min`)
  }
  const outcome = await playWorld(plan, onStep, { signal })
  const { log, violations, failure, counts, seconds } = outcome
  line.wipe()
  if (signal.aborted) return outcome
  console.log(
    `world ${world} (${plan.faults.join(', ')}): ${counts.answer} answers in ${Math.round(seconds)} s, ${violations.length} violations`,
  )
  if (violations.length === 0 && failure === undefined) return outcome
  const file = join(mkdtempSync(join(tmpdir(), 'pledgeview-prove-')), `${plan.seed}.json`)
  writeFileSync(file, JSON.stringify(log))
  if (failure !== undefined) console.error(`It did not reach its end: ${failure}`)
  show(log, violations)
  console.error(
    `Play it again:\n  npm run prove -- --seed ${seed} --world ${world}\nCheck the same answers again:\n  npm run prove -- --log ${file}`,
  )
  return outcome
}

/** Each kind of violation once, the first with its history. */
function show(log: Log, violations: readonly Violation[]): void {
  const kinds = [...Map.groupBy(violations, ({ rule }) => rule).values()]
  for (const [first, ...others] of kinds.slice(0, shownMax))
    console.error(`${first?.rule}: ${first?.about} ${first?.text} (and ${others.length} more)`)
  const [first] = violations
  if (!first) return
  const isAbout = ({ id }: { id?: string }) => id === first.about
  for (const entry of shortest(log, first)) {
    if (entry.kind === 'said') {
      for (const event of entry.events.filter(({ key }) => key.split('/')[0] === first.about))
        console.error(`  ${new Date(entry.at).toISOString()} said ${JSON.stringify(event)}`)
    } else if (entry.kind === 'answer') {
      const shown = JSON.stringify({ ...entry, rows: entry.rows.filter(isAbout) })
      console.error(`  ${new Date(entry.receivedAt).toISOString()} ${shown}`)
    }
  }
}

function checkAgain(file: string): number {
  const log: Log = JSON.parse(readFileSync(file, 'utf8'))
  const violations = check(log)
  console.log(`${log.length} entries, ${violations.length} violations`)
  show(log, violations)
  return violations.length > 0 ? 1 : 0
}

function minutes(): number {
  return Math.round((performance.now() - startedAt) / 60_000)
}
