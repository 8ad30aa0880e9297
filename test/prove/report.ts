/**
 * The report of a proof (test/PROOF.md), and its line in the README. What people wrote into the report stays: the defects that were
 * found so far, and what the checker does not see.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { describeMachine, machineLine } from '../bench/machine.ts'
import { newestKafka } from '../support/kafka/jars.ts'
import type { Simulated } from './simulated.ts'
import { countsOf, type WorldOutcome } from './world.ts'

/** A log without a safeguard. */
export interface Mutant {
  /** The rule of the checker that has to find it. */
  rule: string
  without: string
  isFound: boolean
}

export interface Proof {
  seed: string
  simulated: readonly Simulated[]
  /** Why a simulated world was not played to its end, with its seed. */
  failures: readonly string[]
  worlds: readonly WorldOutcome[]
  mutants: readonly Mutant[]
  minutes: number
}

const root = new URL('../../', import.meta.url)
const report = new URL('test/PROOF.md', root)
const readme = new URL('README.md', root)
/** So many losses of a world are shown. All are counted. */
export const shownMax = 3

/** What was lost, each with its seed; of each world at most so many. */
export function lossesOf(
  { simulated, failures, worlds }: Pick<Proof, 'simulated' | 'failures' | 'worlds'>,
  ofWorldMax = Infinity,
): string[] {
  const inSimulated = simulated.flatMap(({ seed, violations }) =>
    violations.slice(0, ofWorldMax).map(loss => `simulated ${seed}: ${JSON.stringify(loss)}`),
  )
  const inWorlds = worlds.flatMap(({ plan, violations, failure }) => [
    ...(failure === undefined ? [] : [`${plan.seed}: ${failure}`]),
    ...violations
      .slice(0, ofWorldMax)
      .map(({ rule, about, text }) => `${plan.seed}, ${rule}: ${about} ${text}`),
  ])
  return [...failures, ...inSimulated, ...inWorlds].map(loss => `seed ${loss.slice(0, 300)}`)
}

/** Writes both. Returns the summary. */
export function writeReport(proof: Proof): string {
  const { seed, simulated, worlds, mutants, minutes } = proof
  const losses = lossesOf(proof)
  const counted = (what: string) => many(sum(worlds.map(({ counts }) => counts[what] ?? 0)))
  const played = worlds.flatMap(one => one.played)
  const redis = outputOf('redis-server', '--version').match(/v=(\S+)/)?.[1]
  const commit = outputOf('git', 'rev-parse', '--short', 'HEAD').trim()
  const virtual = hours(sum(simulated.map(({ lastedMs }) => lastedMs / 1_000)))
  const ofSimulated = `${many(simulated.length)} simulated worlds of ${virtual} virtual hours`
  const figures = `${counted('answer')} answers under ${played.length} faults, ${losses.length} losses`
  const summary = `${minutes} minutes on commit ${commit}: ${figures}; ${ofSimulated}`
  const real = `${worlds.length} worlds of ${hours(sum(worlds.map(({ seconds }) => seconds)))} hours`
  const values = [
    ['command', `\`npm run prove -- ${process.argv.slice(2).join(' ')}\`, seed ${seed}, ${minutes} minutes`],
    ['commit', commit],
    ['machine', machineLine(describeMachine())],
    ['versions', `Kafka ${newestKafka}, Redis ${redis}`],
    ['simulated', `seeds ${simulated[0]?.seed} and up: ${ofSimulated}`],
    [
      'real',
      `seeds ${seed}.1 and up: ${real}, ${worlds.filter(({ plan }) => plan.shards).length} on two shards`,
    ],
    ['events that were said', counted('events')],
    ['answers that were checked', counted('answer')],
    ['revocations', counted('revoked')],
    ['lists of several pages, which are of one snapshot', counted('lists')],
    ['quiet times, in which every answer is the whole truth', counted('quiet')],
    ['mirrors, whose copy at the end is compared with the truth', counted('copy')],
    ['mutants that the checker found', foundOf(mutants)],
    ['losses', losses.length],
  ]
  const text = `# Proof

Written by \`npm run prove\`. It tries to break what Pledgeview promises: simulated worlds, then real processes under faults, with readers and
mirrors all the time. A checker reads every answer that any of them got. What it decides is at the head of each file in
[prove/checker](./prove/checker).

${summary}.

${table('what | value', values)}

## Faults

${table('fault | played', Object.entries(countsOf(played)).toSorted())}

## What was lost

${listed(lossesOf(proof, shownMax)) || 'Nothing.'}

## The checker can fail

A safeguard is taken out of [a small log](./prove/checker/mutants.ts), and the checker finds it: ${foundOf(mutants)}. The
[simulation](./simulation/safeguards.test.ts) takes nine more out of its model and of what stands around the service.

${sectionOf('What this does not see')}

${sectionOf('Defects that this has found')}
`
  writeFileSync(report, text)
  const last = `\`npm run prove\`: ${figures} ([proof](./test/PROOF.md)).`
  writeFileSync(readme, readFileSync(readme, 'utf8').replace(/^`npm run prove`: .*$/m, last))
  return summary
}

function foundOf(mutants: readonly Mutant[]): string {
  return `${mutants.filter(({ isFound }) => isFound).length} of ${mutants.length}`
}

/** A section that people write, as it is in the report from before. */
function sectionOf(title: string): string {
  const sections = readFileSync(report, 'utf8')
    .trim()
    .split(/\n\n(?=## )/)
  return sections.find(section => section.startsWith(`## ${title}\n`)) ?? `## ${title}`
}

function table(head: string, rows: readonly (readonly unknown[])[]): string {
  const cells = rows.map(row => row.map(cell => String(cell).replaceAll('|', '/')).join(' | '))
  const lines = [head, ...cells].map(line => `| ${line} |`)
  return lines.toSpliced(1, 0, `|${'---|'.repeat(head.split('|').length)}`).join('\n')
}

const listed = (lines: readonly string[]) => lines.map(one => `- ${one}`).join('\n')
const outputOf = (program: string, ...args: string[]) =>
  execFileSync(program, args, { cwd: root, encoding: 'utf8' })
const many = (count: number) => count.toLocaleString('en')
const hours = (seconds: number) => (seconds / 3_600).toFixed(1)
const sum = (numbers: readonly number[]) => numbers.reduce((before, number) => before + number, 0)
