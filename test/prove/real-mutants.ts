/**
 * Safeguards that are taken out of the real program: its processes load a file with one line changed, and play a world. The checker has to
 * find each by its rule. `npm run prove -- --mutants` plays them before its worlds.
 */
import { readFileSync } from 'node:fs'
import { check } from './checker/check.ts'
import type { Log, Violation } from './checker/log.ts'
import type { Mutant } from './report.ts'
import { playWorld } from './world.ts'

/** Files below `services`, what they have once, and what the mutant has instead. */
type Changes = readonly (readonly [file: string, present: string, changed: string])[]
type RealMutant = Pick<Mutant, 'rule' | 'without'> & { changes: Changes }

/** By the rule that finds it: the safeguard that is taken out. */
const changes: Readonly<Record<string, Readonly<Record<string, Changes>>>> = {
  watermark: {
    'a list says the watermark of its index: it says two seconds more': [
      ['query/lists/list-follower.ts', 'asOf: changes.as_of }', 'asOf: changes.as_of + 2_000 }'],
    ],
  },
  limit: {
    'the limiter counts over all processes: each counts alone': [
      [
        'query/rate-limit/rate-limiter-redis.ts',
        'createRedisSlidingWindowLog(settings, dependencies)',
        'createRedisSlidingWindowLog(settings, { ...dependencies, keyPrefix: dependencies.instance })',
      ],
    ],
  },
  revoked: {
    'a revocation is read past the fold, and after it: keys are loaded each minute': [
      ['query/auth/key-ring.ts', 'refused.has(key) ? undefined : found', 'found'],
      ['query/auth/key-ring.ts', 'else known?.delete(row.api_key)', ''],
      ['query/auth/key-ring.ts', ' || keys.size !== state.active', ''],
    ],
  },
  whole: {
    'what is hidden leaves the list index': [
      ['query/lists/list-follower.ts', 'index.remove(departed', 'void (departed'],
      ['query/lists/list-follower.ts', 'index.size === total ? 0 : mismatches + 1', '0'],
    ],
    'the digest follows each change: what leaves the index stays in it': [
      ['query/lists/list-index.ts', "sum -= digestNumber(ids[slot] ?? '', columns.updated[slot] ?? 0)", ''],
    ],
  },
  answers: {
    'the allowlist: a body is not parsed by its schema, and has a field of the tables': [
      ['query/endpoints/endpoint.ts', 'const parsed = schema.parse(body)', 'const parsed = body'],
      [
        'query/campaigns/written-campaign.ts',
        'const project = projectSchema.parse(shown)',
        'const project = shown',
      ],
      ['query/campaigns/campaign-fields.ts', "'list'), updated_at", "'list'), updated_at, creator_id: '1'"],
    ],
    'a detail is cached by its slug': [
      ['query/endpoints/project.ts', 'key: `project ${slug}`', "key: 'project'"],
    ],
    'no removal is left out of a page': [
      ['query/endpoints/removals.ts', 'ids.map(removalOf)', 'ids.slice(1).map(removalOf)'],
    ],
  },
  rows: {
    'the fold counts the last state of a pledge, and no other': [
      [
        'tables/read-sql.ts',
        "moduleUrl), 'utf8')",
        "moduleUrl), 'utf8').replace('pledge_ledger FINAL', 'pledge_ledger')",
      ],
    ],
    'a 304 is for the same body: its tag is of the first bytes alone': [
      ['query/cache/response-cache.ts', 'update(bytes)', 'update(bytes.subarray(0, 40))'],
    ],
  },
}

export const realMutants: readonly RealMutant[] = Object.entries(changes).flatMap(([rule, all]) =>
  Object.entries(all).map(([without, own]) => ({ rule, without, changes: own })),
)

/** What a mutant needs to be found, by its rule. */
const needed: Readonly<Record<string, readonly string[]>> = { limit: ['askTooMuch'], revoked: ['revokeKeys'] }
// A world ends when the mutant is found, mostly during the first.
const underTraffic = ['killProjectors', 'slowFold', 'killProjectors', 'slowFold']
const services = new URL('../../services/', import.meta.url)

/** The option of Node that loads the changed files. Throws if a file does not have the text exactly once. */
export function optionOf({ changes }: RealMutant): string {
  const urls = changes.map(([file, present, changed]) => {
    const url = new URL(file, services)
    const found = readFileSync(url, 'utf8').split(present).length - 1
    if (found !== 1) throw new Error(`${file} has ${found} times: ${present}`)
    return [url.href, present, changed]
  })
  const hook = `import { registerHooks } from 'node:module'
    const changes = ${JSON.stringify(urls)}
    registerHooks({ load(url, context, next) {
      const loaded = next(url, context)
      const own = changes.filter(one => one[0] === url)
      if (own.length === 0) return loaded
      let source = Buffer.from(loaded.source).toString()
      for (const [, present, changed] of own) source = source.replace(present, () => changed)
      return { ...loaded, source }
    } })`
  return `--import=data:text/javascript,${encodeURIComponent(hook)}`
}

/** Plays a world of this mutant, until it is found or the world ends. */
export async function tryMutant(
  mutant: RealMutant,
  seed: string,
  onStep: (text: string) => void,
  isStopped: () => boolean,
): Promise<Mutant> {
  const { rule, without } = mutant
  const settings = { NODE_OPTIONS: optionOf(mutant) }
  const plan = { seed, settings, faults: [...(needed[rule] ?? []), ...underTraffic] }
  const byRule = (one: Violation) => one.rule === rule
  const isEnough = (log: Log) => isStopped() || check(log).some(byRule)
  const { violations, failure } = await playWorld(plan, onStep, isEnough)
  const found = violations.find(byRule)
  const said = found ? `${found.about} ${found.text}` : `${failure ?? violations[0]?.text ?? ''}`
  return { rule, without, isFound: found !== undefined, said: said.slice(0, 200) }
}
