/** The report of a proof (test/PROOF.md), and its line in the README. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { invariants } from '../../services/runtime/ops/invariants.ts'
import { newestKafka } from '../support/deployment/local-services.ts'
import { withLosses } from '../support/simulation/seeds.ts'
import { type Mutant, mutants } from './checker/mutants.ts'
import type { Tried } from './real-mutants.ts'
import type { Simulated } from './simulated.ts'
import type { WorldOutcome } from './world.ts'

/** What a proof has found so far in the service itself, each with its seed, and what became of it. */
const defects: readonly { what: string; seed: string; became: string }[] = [
  {
    what: 'A campaign came back with a stamp that is earlier than that of its removal, after a change of the leader. No mirror lost it',
    seed: 'simulated 144435387194',
    became: 'the fold looks at the row of the removal, too',
  },
  {
    what:
      'After a promotion, `/stats` counts the generation from before until the leader has changed the views, about a second later. So it ' +
      'may count fewer campaigns than a list has shown',
    seed: '`p1`: killProjectors, slowFold, rebuildThroughKill, rollBack',
    became: 'they sum the campaigns of the generation that lists show',
  },
  {
    what: 'A projector that starts while Kafka elects leaders on a busy machine ends with a TypeError of kafkajs',
    seed: '`r1` and `r2`: the start of the world',
    became: 'it waits, as for a cluster that is away (services/log/kafka/client.ts)',
  },
]

/** What a reviewer tried to smuggle past the checker, and it did not find; and faults that no world has. */
const unseen: readonly string[] = [
  'A lie that all answers tell alike, such as a removal with a wrong time.',
  'While events come, a total that is wrong for a moment: of a filtered list, or an amount in `/stats` that agrees with the rest of its ' +
    'answer. Exact are the quiet times; between them `/stats` counts no fewer campaigns than are public for sure.',
  'The order by amount and by end, and order outside of quiet times; `days_remaining`.',
  'What `X-RateLimit-*` and `Retry-After` say, beyond their form. How long a cache keeps an answer: only that its `Age` is true.',
  'A removal that a delta leaves out while the campaign may be back; and a `kept_since` that is too early.',
  'For a second after a promotion processes may read different generations, and the backers and creators in `/stats` may be of the one before.',
  'Full disks: each server refuses to write for want of space, but what it had begun to write is not torn. The disks of Kafka are never full.',
  'The portal on shards, replicas, and several brokers.',
]

export interface Proof {
  seed: string
  simulated: readonly Simulated[]
  worlds: readonly WorldOutcome[]
  /** Mutants that the checker did not find. */
  missed: readonly Mutant[]
  /** Mutants of the real program. */
  tried: readonly Tried[]
  minutes: number
}

const root = new URL('../../', import.meta.url)
const many = (count: number) => Math.round(count).toLocaleString('en')

export function writeReport(proof: Proof): { file: string; summary: string } {
  const { seed, simulated, worlds, missed, tried, minutes } = proof
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()
  const countOfAll = (what: string) => many(worlds.reduce((sum, { counts }) => sum + (counts[what] ?? 0), 0))
  const played = many(worlds.reduce((sum, { plan }) => sum + plan.faults.length, 0))
  const faults = countOf(worlds.flatMap(({ plan }) => plan.faults))
  const versionOf = (of: string) =>
    JSON.parse(readFileSync(new URL(`node_modules/${of}/package.json`, root), 'utf8')).version
  const redis = execFileSync('redis-server', ['--version'], { encoding: 'utf8' }).match(/v=(\S+)/)?.[1]
  const hours = worlds.reduce((sum, { seconds }) => sum + seconds, 0) / 3_600
  const failures = worlds.flatMap(({ plan, violations, failure }) => [
    ...(failure === undefined ? [] : [`seed ${plan.seed}: ${failure.slice(0, 300)}`]),
    ...violations
      .slice(0, 3)
      .map(({ rule, about, text }) => `seed ${plan.seed}, ${rule}: ${about} ${text.slice(0, 300)}`),
  ])
  const lost = failures.length + withLosses(simulated).length
  const [cpu] = cpus()
  const virtual = simulated.reduce((sum, { lastedMs }) => sum + lastedMs, 0) / 3_600_000
  const summary =
    `${minutes} minutes on commit ${commit}: ${countOfAll('answer')} answers of real processes under ${played} faults, ` +
    `${many(simulated.length)} simulated worlds of ${virtual.toFixed(1)} virtual hours: ${lost} losses`
  const table = (head: string, rows: readonly (readonly unknown[])[]) => [
    `| ${head} |`,
    `|${'---|'.repeat(head.split('|').length)}`,
    ...rows.map(row => `| ${row.join(' | ')} |`),
  ]
  const text = [
    '# Proof',
    '',
    'Written by `npm run prove`. It tries to break what Pledgeview promises: simulated worlds, then real processes under faults, with readers and',
    'mirrors all the time. A checker reads every answer that any of them got. What it decides is at the head of each file in',
    '[prove/checker](./prove/checker).',
    '',
    `${summary}.`,
    '',
    ...table('what | value', [
      [
        'command',
        `\`npm run prove -- ${process.argv.slice(2).join(' ')}\`, seed ${seed}, ${minutes} minutes`,
      ],
      ['commit', commit],
      ['machine', `${cpu?.model}, ${cpus().length} cores, ${(totalmem() / 2 ** 30).toFixed(0)} GiB`],
      [
        'versions',
        `Node ${process.version}, Kafka ${newestKafka}, ClickHouse of chdb ${versionOf('chdb')}, Redis ${redis}`,
      ],
      [
        'simulated',
        `seeds ${1_000_000 + 1_000 * Number(seed)} and up: ${many(simulated.length)} worlds of ${virtual.toFixed(1)} virtual hours`,
      ],
      [
        'real',
        `seeds ${seed}.1 to ${seed}.${worlds.length}: ${worlds.length} worlds of ${hours.toFixed(1)} hours, ${worlds.filter(({ plan }) => plan.shards).length} of them on two shards`,
      ],
      ['events that were said', countOfAll('events')],
      ['answers that were checked', countOfAll('answer')],
      ['revocations, each refused by every process', countOfAll('revoked')],
      ['quiet times, in which every answer is the whole truth', countOfAll('quiet')],
      ['mirrors that ended equal to the truth', countOfAll('copy')],
      ['losses', lost],
    ]),
    '',
    '## Faults',
    '',
    ...table('fault | played', Object.entries(faults).toSorted()),
    '',
    '## What was lost',
    '',
    ...(failures.length === 0 ? ['Nothing.'] : failures.map(one => `- ${one}`)),
    '',
    '## The checker can fail',
    '',
    ...(tried.length === 0
      ? ['Of this run, no mutants of the real program (`--mutants`).', '']
      : [
          `A safeguard is taken out of the real program, which plays a world: ${tried.filter(({ found }) => found).length} of ${tried.length} were found.`,
          '',
          ...table(
            'rule | without this | what the checker said',
            tried.map(({ rule, without, found }) => [
              rule,
              without,
              found?.replaceAll('|', '/') ?? '**nothing**',
            ]),
          ),
          '',
        ]),
    `A safeguard is taken out of a small log, and the checker finds it: ${mutants.length - missed.length} of ${mutants.length}. The`,
    '[simulation](./simulation/safeguards.test.ts) takes out ten more of the service itself.',
    '',
    ...table(
      'rule | without this | found',
      mutants.map(mutant => [mutant[0], mutant[1], missed.includes(mutant) ? '**no**' : 'yes']),
    ),
    '',
    '## What this does not see',
    '',
    ...unseen.map(one => `- ${one}`),
    '',
    '## Assertions that stay on',
    '',
    `${Object.keys(invariants).length} assertions run in every process, here and in production. One that does not hold is counted in`,
    '`pledgeview_invariants_broken_total` and fires an alert ([the guide](../deploy/watch.md#assertions)). The checker expects none.',
    '',
    ...Object.entries(invariants).map(([name, text]) => `- \`${name}\`: ${text}`),
    '',
    '## Defects that this has found',
    '',
    ...table(
      'what | seed | what became of it',
      defects.map(({ what, seed: of, became }) => [what, of, became]),
    ),
    '',
  ]
  writeFileSync(new URL('test/PROOF.md', root), text.join('\n'))
  const readme = new URL('README.md', root)
  const last = `\`npm run prove\`: ${countOfAll('answer')} answers under ${played} faults, ${lost} losses ([proof](./test/PROOF.md)).`
  writeFileSync(readme, readFileSync(readme, 'utf8').replace(/^`npm run prove`: .*$/m, last))
  return { file: 'test/PROOF.md', summary }
}

function countOf(names: readonly string[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(names, name => name)].map(([name, all]) => [name, all.length]))
}
