/** Names the suites of each kind, and starts the long ones first, so that none still runs when all others have finished. */
import { globSync } from 'node:fs'
import { matchesGlob } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The suites of `npm run test:long`; all others are part of `npm test`. They start in this order, the longest among the first.
 * Add a suite here if it takes more than ten seconds, or needs software that few people have installed.
 */
export const longSuites: readonly string[] = [
  'test/prove/prove.test.ts',
  // Beside the worlds of the proof, which need all of a core, come suites that mostly wait.
  'test/integration/**/*kafka-{shared,group,cluster}.test.ts',
  'test/end-to-end/kickstarter-distributed.test.ts',
  'test/end-to-end/commands/*.test.ts',
  'test/end-to-end/portal-kills.test.ts',
  'test/end-to-end/restore/*.test.ts',
  'test/integration/deploy/{balancer,kubernetes}.test.ts',
  'test/end-to-end/{kill,from-postgres,stack}.test.ts',
  'test/clients/**/*.test.ts',
  'test/guides/{guides,distributed-lines}.test.ts',
  'test/contracts/**/*.test.ts',
  'test/browser/**/*.test.ts',
  'test/integration/generations/**/*.test.ts',
  'test/integration/projector/history/history-worlds.test.ts',
  'test/simulation/{mirrors,clickhouse,safeguards}.test.ts',
  'test/integration/**/list-index.test.ts',
  'test/integration/log/event-log-kafka.test.ts',
  'test/integration/clickhouse-server/*.test.ts',
  'test/integration/tables/{every-setting,tables-migrate,tables-roles}.test.ts',
  'test/integration/shards/*.test.ts',
  'test/integration/projector/{freshness,properties,service}.test.ts',
  'test/integration/projector/privacy.test.ts',
  'test/integration/projector/fold/*.test.ts',
  'test/integration/portal/keys/portal-keys.test.ts',
  'test/integration/query/auth/revocations.test.ts',
  'test/integration/query/http/connections.test.ts',
  'test/end-to-end/erasure.test.ts',
  'test/fuzz/**/*.test.ts',
]

/**
 * What CI also runs on Node and nothing else: the whole program, and for each kind of other software one short suite that says why it
 * skips without it.
 */
export const bareSuites: readonly string[] = [
  'test/end-to-end/start.test.ts',
  // ClickHouse comes from npm; openssl does not.
  'test/integration/tables/tables.test.ts',
  'test/integration/deploy/alerts.test.ts',
  // Java, Kafka and kcat.
  'test/integration/log/registry/schema-registry.test.ts',
  // Programs in other languages.
  'test/integration/portal/guide/samples.test.ts',
  'test/integration/query/redis/redis-connection.test.ts',
]

/** Unit tests that replace something in a library before anybody loads it. The others share a process. */
export const isolatedUnits: readonly string[] = [
  'test/unit/log/kafka/repairs/library.test.ts',
  'test/unit/query/http/secret-verifier-steps.test.ts',
]

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** Throws if a pattern, or a choice of one, matches no file: a moved suite must not become a short one, or run nowhere, unnoticed. */
export function checkSuites(patterns = [...longSuites, ...bareSuites, ...isolatedUnits]): void {
  const lost = patterns.flatMap(choicesOf).filter(pattern => globSync(pattern, { cwd: root }).length === 0)
  if (lost.length > 0)
    throw new Error(`a list of suites in ${import.meta.filename} matches no file: ${lost.join(', ')}`)
}

/** A pattern for each choice in its braces, which do not nest. */
function choicesOf(pattern: string): string[] {
  const [braces, choices = ''] = /\{([^{}]*)\}/.exec(pattern) ?? []
  if (braces === undefined) return [pattern]
  return choices.split(',').flatMap(choice => choicesOf(pattern.replace(braces, choice)))
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // Within a rank, and for the short suites, vitest decides: by time if it is known, otherwise by size.
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => rank(a) - rank(b))
  }
}

function rank({ moduleId }: TestSpecification): number {
  const found = longSuites.findIndex(pattern => matchesGlob(moduleId, `${root}${pattern}`))
  return found < 0 ? longSuites.length : found
}
