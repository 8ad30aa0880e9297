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
import { logsOf, mutants } from './checker/mutants.ts'
import { type Tried, tryMutants } from './real-mutants.ts'
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
/** Mutants are played before. */
let endsAt = startedAt + playMs
const line = createPaintedLine({ stream: process.stderr })
const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort(signal))

process.exitCode = values.log ? checkAgain(values.log) : await prove()
process.exit()

async function prove(): Promise<number> {
  const requirement = await localServices()
  if (!requirement.isMet) {
    console.error(`this cannot run here: ${requirement.reason}`)
    return 2
  }
  console.log(`seed ${seed}, ${values.minutes} minutes`)
  const missed = mutants.filter(mutant => {
    const { good, bad } = logsOf(mutant)
    return check(good).length > 0 || !check(bad).some(({ rule }) => rule === mutant[0])
  })
  for (const [rule, without] of missed) console.error(`the checker does not find it (${rule}): ${without}`)
  const paint = (text: string) => line.paint(() => `${text}; ${minutes()} min`)
  const onTried = ({ rule, without, found, failure, seconds }: Tried) => {
    line.wipe()
    console.log(
      `${Math.round(seconds)} s without ${without}: ${found ? `${rule}: ${found}` : `NOT FOUND ${failure ?? ''}`}`,
    )
  }
  const tried = values.mutants ? await tryMutants(seed, { onStep: paint, onTried }, stopping.signal) : []
  endsAt = performance.now() + playMs
  const simulated = values.world ? [] : await simulateSome()
  const worlds: WorldOutcome[] = []
  let losses = missed.length + withLosses(simulated).length + tried.filter(({ found }) => !found).length
  for (let world = Number(values.world ?? 1); !stopping.signal.aborted; world++) {
    const plan = drawPlan(`${seed}.${world}`, stepsOfWorld)
    const onStep = (text: string) => {
      if (!process.stderr.isTTY) console.log(`world ${world}: ${text}`)
      line.paint(
        () =>
          `world ${world} on ${plan.shards ?? 'no'} shards: ${text}; ${worlds.length} done, ${minutes()} min`,
      )
    }
    const outcome = await playWorld(plan, onStep, { signal: stopping.signal })
    line.wipe()
    if (stopping.signal.aborted) break
    // Its log is large, and is not needed any more.
    worlds.push({ ...outcome, log: { rows: [], entries: [] } })
    losses += outcome.violations.length + (outcome.failure === undefined ? 0 : 1)
    report(world, outcome)
    if (values.world || performance.now() > endsAt) break
  }
  if (!values.world) {
    const { file, summary } = writeReport({
      ...{ seed, simulated, worlds, missed, tried },
      minutes: minutes(),
    })
    console.log(`${summary}\nThe report is in ${file}.`)
  }
  return losses > 0 ? 1 : 0
}

async function simulateSome(): Promise<Simulated[]> {
  const outcomes: Simulated[] = []
  const until = endsAt - (1 - simulatedShare) * playMs
  for (let n = 0; (n === 0 || performance.now() < until) && !stopping.signal.aborted; n++) {
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

function report(world: number, { plan, log, violations, failure, counts, seconds }: WorldOutcome): void {
  console.log(
    `world ${world} (${plan.faults.join(', ')}): ${counts.answer} answers in ${Math.round(seconds)} s, ${violations.length} violations`,
  )
  if (violations.length === 0 && failure === undefined) return
  const file = join(mkdtempSync(join(tmpdir(), 'pledgeview-prove-')), `${plan.seed}.json`)
  writeFileSync(file, JSON.stringify(log))
  if (failure !== undefined) console.error(`It did not reach its end: ${failure}`)
  show(log, violations)
  console.error(
    `Play it again:\n  npm run prove -- --seed ${seed} --world ${world}\nCheck the same answers again:\n  npm run prove -- --log ${file}`,
  )
}

/** Each kind of violation once, the first with its history. */
function show(log: Log, violations: readonly Violation[]): void {
  const kinds = [...Map.groupBy(violations, ({ rule }) => rule).values()]
  for (const [first, ...others] of kinds.slice(0, shownMax)) {
    if (!first) continue
    console.error(`${first.rule}: ${first.about} ${first.text} (and ${others.length} more)`)
  }
  const [first] = violations
  if (!first) return
  const history = shortest(log, first)
  for (const entry of history.entries.filter(({ kind }) => kind === 'said' || kind === 'answer')) {
    if (entry.kind === 'said') {
      const own = entry.events.filter(({ key }) => key.split('/')[0] === first.about)
      for (const event of own)
        console.error(`  ${new Date(entry.at).toISOString()} said ${JSON.stringify(event)}`)
    } else if (entry.kind === 'answer') {
      const rows = entry.rows?.map(n => log.rows[n]).filter(row => row?.id === first.about)
      console.error(`  ${new Date(entry.receivedAt).toISOString()} ${JSON.stringify({ ...entry, rows })}`)
    }
  }
}

function checkAgain(file: string): number {
  const log = JSON.parse(readFileSync(file, 'utf8')) as Log
  const violations = check(log)
  console.log(`${log.entries.length} entries, ${violations.length} violations`)
  show(log, violations)
  return violations.length > 0 ? 1 : 0
}

function minutes(): number {
  return Math.round((performance.now() - startedAt) / 60_000)
}
