/**
 * `npm run prove [-- --minutes N] [--seed S] [--world N] [--log FILE]`: tries to break what Pledgeview promises, and says what came of it.
 *
 * A fifth of the time it plays worlds of the simulation, with new seeds. Then it plays worlds of real processes under faults that are
 * drawn from the seed, and checks every answer that any reader got. A failure prints the seed, the answers that show it, and the command that
 * plays it again; the exit code is 1. `--world` plays that world alone. `--log` checks a log that was kept. Without these two, the report is
 * written to test/PROOF.md.
 */
import { randomInt } from 'node:crypto'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { messageOf } from '../../services/runtime/message-of.ts'
import { createPaintedLine } from '../../services/runtime/progress.ts'
import { localServices } from '../support/deployment/local-services.ts'
import { check } from './checker/check.ts'
import type { Log, Violation } from './checker/log.ts'
import { tryLogMutants } from './checker/mutants.ts'
import { lossesOf, type Proof, shownMax, writeReport } from './report.ts'
import { type Simulated, simulate, simulatedSeed } from './simulated.ts'
import { drawPlan, playWorld, type WorldOutcome } from './world.ts'

const stepsOfWorld = 5
const simulatedShare = 0.2

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '3' },
    seed: { type: 'string' },
    world: { type: 'string' },
    log: { type: 'string' },
  },
})
const seed = values.seed ?? String(randomInt(1, 1_000_000_000))
const startedAt = performance.now()
const playMs = 60_000 * Number(values.minutes)
const line = createPaintedLine(process.stderr)
const stopping = new AbortController()
const { signal } = stopping
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopping.abort())
process.exitCode = values.log ? checkAgain(values.log) : await prove()
process.exit()

async function prove(): Promise<number> {
  const requirement = await localServices()
  if (!requirement.isMet) {
    console.error(`this cannot run here: ${requirement.reason}`)
    return 2
  }
  console.log(`seed ${seed}, ${values.minutes} minutes`)
  const mutants = tryLogMutants()
  const playedFrom = performance.now()
  const { outcomes: simulated, failures } = values.world
    ? { outcomes: [], failures: [] }
    : await simulateUntil(playedFrom + simulatedShare * playMs)
  const worlds: WorldOutcome[] = []
  for (let world = Number(values.world ?? 1); !signal.aborted; world++) {
    const outcome = await playOne(world)
    if (signal.aborted) break
    // Its log is large, and is not needed any more.
    worlds.push({ ...outcome, log: [] })
    if (values.world || performance.now() > playedFrom + playMs) break
  }
  const proof = { seed, simulated, failures, worlds, mutants, minutes: minutes() }
  if (!values.world) console.log(`${writeReport(proof)}\nThe report is in test/PROOF.md.`)
  const missed = mutants.filter(({ isFound }) => !isFound)
  for (const { rule, without } of missed) console.error(`the checker does not find it (${rule}): ${without}`)
  return missed.length + lossesOf(proof).length > 0 ? 1 : 0
}

async function simulateUntil(moment: number): Promise<Pick<Proof, 'failures'> & { outcomes: Simulated[] }> {
  const outcomes: Simulated[] = []
  const failures: string[] = []
  for (let n = 0; (n === 0 || performance.now() < moment) && !signal.aborted; n++) {
    const one = simulatedSeed(seed, n)
    paint('simulated')(`world ${n + 1}`)
    const losses: string[] = []
    try {
      const outcome = await simulate(one, { usesIndex: n % 2 === 0 })
      outcomes.push(outcome)
      losses.push(...lossesOf({ simulated: [outcome], failures: [], worlds: [] }))
    } catch (error) {
      // A world that never ends, for example.
      failures.push(`simulated ${one}: ${messageOf(error)}`)
      losses.push(...failures.slice(-1))
    }
    if (losses.length === 0) continue
    say(losses.slice(0, shownMax).join('\n'))
    say(
      `Play it again:\n  SIMULATION_SEED=${one} npx vitest run --config test/vitest.config.ts test/simulation/mirrors.test.ts`,
    )
  }
  return { outcomes, failures }
}

/** Plays a world of real processes, and says what came of it. */
async function playOne(world: number): Promise<WorldOutcome> {
  const plan = drawPlan(`${seed}.${world}`, stepsOfWorld)
  const name = `world ${world} on ${plan.shards ?? 'no'} shards`
  const outcome = await playWorld(plan, paint(name), signal)
  const { log, violations, counts, seconds } = outcome
  if (signal.aborted) return outcome
  const losses = lossesOf({ simulated: [], failures: [], worlds: [outcome] })
  say(
    `${name} (${plan.faults.join(', ')}): ${counts.answer} answers in ${Math.round(seconds)} s, ${losses.length} losses`,
  )
  if (losses.length === 0) return outcome
  const file = join(mkdtempSync(join(tmpdir(), 'pledgeview-prove-')), `${plan.seed}.json`)
  writeFileSync(file, JSON.stringify(log))
  say(losses.slice(0, shownMax).join('\n'))
  show(log, violations)
  say(`Play it again:\n  npm run prove -- --seed ${seed} --world ${world}`)
  say(`Check the same answers again:\n  npm run prove -- --log ${file}`)
  return outcome
}

/** What was said of the first violation's campaign, and the answers that show it. */
function show(log: Log, [first]: readonly Violation[]): void {
  if (!first) return
  for (const entry of log.filter(one => one.kind === 'said'))
    for (const event of entry.events.filter(({ key }) => key.split('/')[0] === first.about))
      say(`  ${new Date(entry.at).toISOString()} said ${JSON.stringify(event)}`)
  for (const answer of first.answers) {
    const rows = answer.rows.filter(({ id }) => id === first.about)
    say(`  ${new Date(answer.receivedAt).toISOString()} ${JSON.stringify({ ...answer, rows })}`)
  }
}

function checkAgain(file: string): number {
  const log: Log = JSON.parse(readFileSync(file, 'utf8'))
  const violations = check(log)
  say(`${log.length} entries, ${violations.length} violations`)
  for (const { rule, about, text } of violations) say(`${rule}: ${about} ${text}`)
  show(log, violations)
  return violations.length > 0 ? 1 : 0
}

/** Shows on a terminal how far it is. */
function paint(what: string): (text: string) => void {
  return text => line.paint(() => `${what}: ${text}; ${minutes()} min`)
}

function say(text: string): void {
  line.wipe()
  console.log(text)
}

function minutes(): number {
  return Math.round((performance.now() - startedAt) / 60_000)
}
