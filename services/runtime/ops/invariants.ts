/**
 * Assertions that stay on. Each stands where the values already pass, and costs a comparison; what comes from a cache passes none. One
 * that does not hold means a defect of Pledgeview. It is counted in `pledgeview_invariants_broken_total` and logged, and the work goes on:
 * what is wrong then is known, and a process that ends would take the right answers away, too. `npm run prove` expects none.
 */
import type { Logger } from 'pino'

export const invariants = {
  'answer-allowlist': 'the allowlist has nothing to hold back: a row has no other fields before its schema',
  'answer-lifetime': 'an answer is not older than its cache time when it is made',
  'campaign-totals': 'no amount, percentage and number of a campaign is negative',
  'campaign-rewards': 'a reward tier has at most what it had: remaining is not above available',
  'page-size': 'a page has at most its limit, and nothing beyond the total',
  'page-twice': 'a page has no campaign twice',
  'page-end': 'there is a next page if the total is beyond this one',
  'page-digest': 'the digest of all campaigns counts no fewer than the list has',
  'removals-order': 'removals come in the order of their moments',
  'stats-totals': 'no statistic is negative',
  'stats-parts': 'the live and the funded campaigns together are at most all campaigns',
  'stats-categories': 'the categories add up to all campaigns',
  'stats-people': 'there are no more backers than pledges, and no more creators than campaigns',
  'stats-rate': 'the success rate is a percentage',
  'index-watermark': 'within a generation, the watermark of a query process does not step back',
  'index-changes': 'each change of the list index has its moment',
  'key-window': 'the window of a key never has more requests than its limit',
  'key-hash': 'a key has the hash of a secret',
  'usage-written': 'no more requests are written than were counted',
  'batch-records': 'each record of a batch is an event or a reject',
  'batch-positions': 'the positions of a batch only grow',
  'stored-positions': 'within an era, the position of a partition only grows',
  'watermark-grows': 'the watermark of a leader only grows',
  'epoch-grows': 'within a generation, each term of a process has a higher epoch than the one before',
  'fold-id-room': 'the statements of a term have room between its epoch and the next one',
} as const satisfies Record<string, string>

export type Invariant = keyof typeof invariants

const loggedEveryMs = 60_000

// One for the process: most of what asserts is pure, and has neither a log nor metrics.
const broken = new Map<Invariant, { count: number; loggedAt: number }>()
let logger: Logger | undefined

/** `detail`: for the log, without private data. */
export function invariant(name: Invariant, holds: boolean, detail?: () => object): void {
  if (holds) return
  const known = broken.get(name) ?? { count: 0, loggedAt: Number.NEGATIVE_INFINITY }
  broken.set(name, known)
  known.count++
  if (performance.now() - known.loggedAt < loggedEveryMs) return
  known.loggedAt = performance.now()
  logger?.error({ invariant: name, ...detail?.() }, `an invariant does not hold: ${invariants[name]}`)
}

/** How often each did not hold, since the process started. */
export function brokenInvariants(): [Invariant, number][] {
  return (Object.keys(invariants) as Invariant[]).map(name => [name, broken.get(name)?.count ?? 0])
}

export function logInvariants(to: Logger): void {
  logger = to
}
