/**
 * The report of a proof (test/PROOF.md), and its line in the README. What people wrote into the report stays: the defects that were
 * found so far, and what the checker does not see.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { invariants } from '../../services/runtime/ops/invariants.ts'
import { newestKafka } from '../support/deployment/local-services.ts'
import { withLosses } from '../support/simulation/seeds.ts'
import type { LogMutant } from './checker/mutants.ts'
import type { Tried } from './real-mutants.ts'
import type { Simulated } from './simulated.ts'
import { countsOf, type WorldOutcome } from './world.ts'

export interface Proof {
  seed: string
  simulated: readonly Simulated[]
  worlds: readonly WorldOutcome[]
  logMutants: readonly LogMutant[]
  /** Mutants of the real program. */
  tried: readonly Tried[]
  minutes: number
}

const root = new URL('../../', import.meta.url)
const report = new URL('test/PROOF.md', root)
const readme = new URL('README.md', root)

/** Writes both. Returns the summary. */
export function writeReport(proof: Proof): string {
  const { worlds, simulated, minutes } = proof
  const failures = failuresOf(worlds)
  const lost = failures.length + withLosses(simulated).length
  const { answers, played, virtual } = figuresOf(proof)
  const commit = outputOf('git', 'rev-parse', '--short', 'HEAD').trim()
  const summary =
    `${minutes} minutes on commit ${commit}: ${answers} answers of real processes under ${played} faults, ` +
    `${many(simulated.length)} simulated worlds of ${virtual} virtual hours: ${lost} losses`
  const faults = countsOf(worlds.flatMap(({ plan }) => plan.faults))
  const text = `# Proof

Written by \`npm run prove\`. It tries to break what Pledgeview promises: simulated worlds, then real processes under faults, with readers and
mirrors all the time. A checker reads every answer that any of them got. What it decides is at the head of each file in
[prove/checker](./prove/checker).

${summary}.

${table('what | value', [...valuesOf(proof, commit), ['losses', lost]])}

## Faults

${table('fault | played', Object.entries(faults).toSorted())}

## What was lost

${listed(failures) || 'Nothing.'}

## The checker can fail

${mutantsOf(proof)}

${sectionOf('What this does not see')}

## Assertions that stay on

${Object.keys(invariants).length} assertions run in every process, here and in production. One that does not hold is counted in
\`pledgeview_invariants_broken_total\` and fires an alert ([the guide](../deploy/watch.md#assertions)). The checker expects none.

${listed(Object.entries(invariants).map(([name, what]) => `\`${name}\`: ${what}`))}

${sectionOf('Defects that this has found')}
`
  writeFileSync(report, text)
  const last = `\`npm run prove\`: ${answers} answers under ${played} faults, ${lost} losses ([proof](./test/PROOF.md)).`
  writeFileSync(readme, readFileSync(readme, 'utf8').replace(/^`npm run prove`: .*$/m, last))
  return summary
}

function failuresOf(worlds: readonly WorldOutcome[]): string[] {
  return worlds.flatMap(({ plan, violations, failure }) => {
    const texts = violations
      .slice(0, 3)
      .map(({ rule, about, text }) => `, ${rule}: ${about} ${text.slice(0, 300)}`)
    if (failure !== undefined) texts.unshift(`: ${failure.slice(0, 300)}`)
    return texts.map(text => `seed ${plan.seed}${text}`)
  })
}

function figuresOf({ worlds, simulated }: Proof) {
  const total = (what: string) => many(sum(worlds.map(({ counts }) => counts[what] ?? 0)))
  return {
    total,
    answers: total('answer'),
    played: many(sum(worlds.map(({ plan }) => plan.faults.length))),
    virtual: (sum(simulated.map(({ lastedMs }) => lastedMs)) / 3_600_000).toFixed(1),
  }
}

/** What it ran on, and how much it did. */
function valuesOf(proof: Proof, commit: string): [what: string, value: string][] {
  const { seed, simulated, worlds, minutes } = proof
  const { total, answers, virtual } = figuresOf(proof)
  const [cpu] = cpus()
  const redis = outputOf('redis-server', '--version').match(/v=(\S+)/)?.[1]
  const chdb = JSON.parse(readFileSync(new URL('node_modules/chdb/package.json', root), 'utf8')).version
  const hours = (sum(worlds.map(({ seconds }) => seconds)) / 3_600).toFixed(1)
  const onShards = worlds.filter(({ plan }) => plan.shards).length
  const command = `npm run prove -- ${process.argv.slice(2).join(' ')}`
  return [
    ['command', `\`${command}\`, seed ${seed}, ${minutes} minutes`],
    ['commit', commit],
    ['machine', `${cpu?.model}, ${cpus().length} cores, ${(totalmem() / 2 ** 30).toFixed(0)} GiB`],
    ['versions', `Node ${process.version}, Kafka ${newestKafka}, ClickHouse of chdb ${chdb}, Redis ${redis}`],
    [
      'simulated',
      `seeds ${1_000_000 + 1_000 * Number(seed)} and up: ${many(simulated.length)} worlds of ${virtual} virtual hours`,
    ],
    [
      'real',
      `seeds ${seed}.1 to ${seed}.${worlds.length}: ${worlds.length} worlds of ${hours} hours, ${onShards} of them on two shards`,
    ],
    ['events that were said', total('events')],
    ['answers that were checked', answers],
    ['revocations, each refused by every process', total('revoked')],
    ['quiet times, in which every answer is the whole truth', total('quiet')],
    ['mirrors that ended equal to the truth', total('copy')],
  ]
}

function mutantsOf({ tried, logMutants }: Proof): string {
  const found = (all: readonly { isFound: boolean }[]) => all.filter(({ isFound }) => isFound).length
  const said = tried.map(one => [
    ...[one.rule, one.without],
    one.isFound ? one.said.replaceAll('|', '/') : '**nothing**',
  ])
  const ofProgram = `A safeguard is taken out of the real program, which plays a world: ${found(tried)} of ${tried.length} were found.

${table('rule | without this | what the checker said', said)}`
  return `${tried.length > 0 ? ofProgram : 'Of this run, no mutants of the real program (`--mutants`).'}

A safeguard is taken out of a small log, and the checker finds it: ${found(logMutants)} of ${logMutants.length}. The
[simulation](./simulation/safeguards.test.ts) takes out ten more of the service itself.

${table(
  'rule | without this | found',
  logMutants.map(({ rule, without, isFound }) => [rule, without, isFound ? 'yes' : '**no**']),
)}`
}

/** A section that people write, as it is in the report from before. */
function sectionOf(title: string): string {
  const sections = readFileSync(report, 'utf8')
    .trim()
    .split(/\n\n(?=## )/)
  return sections.find(section => section.startsWith(`## ${title}\n`)) ?? `## ${title}`
}

function table(head: string, rows: readonly (readonly unknown[])[]): string {
  const lines = [head, ...rows.map(row => row.join(' | '))].map(cells => `| ${cells} |`)
  return lines.toSpliced(1, 0, `|${'---|'.repeat(head.split('|').length)}`).join('\n')
}

function listed(lines: readonly string[]): string {
  return lines.map(one => `- ${one}`).join('\n')
}

function outputOf(program: string, ...args: string[]): string {
  return execFileSync(program, args, { cwd: root, encoding: 'utf8' })
}

function many(count: number): string {
  return Math.round(count).toLocaleString('en')
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((before, number) => before + number, 0)
}
