/**
 * Small logs that are made by hand: for each rule, the log of a service that keeps the promise, and the log of one from which a safeguard
 * was taken out. So the checker itself is checked, in CI and at the start of each proof.
 */
import type { Project } from '../../../contracts/api/schemas.ts'
import { campaignEvent, pledgeEvent } from '../../support/events/sample-events.ts'
import { contentOf } from '../stage/recorder.ts'
import type { Log } from './log.ts'
import { createWriter, digestOf, type Writer } from './log-writer.ts'

const c1 = (version: number, more: object = {}) =>
  campaignEvent({ campaign_id: 'c1', version, title: `state ${version}`, ...more })
const c2 = campaignEvent({ campaign_id: 'c2', launch_date: Date.UTC(2020, 0, 1) })
const p0 = (version: number, amount_minor: number) =>
  pledgeEvent({ campaign_id: 'c1', pledge_id: 'p0', version, amount_minor })
const p1 = pledgeEvent({ campaign_id: 'c1', pledge_id: 'p1', amount_minor: 4 })
const hidden = c1(3, { status: 'SUSPENDED' })
const common = [c1(1), c1(2), p0(1, 1), p0(2, 3), p1]

const leaking = {
  status: 200,
  headers: { 'x-request-id': '12345678', 'access-control-allow-origin': '*' },
  body: '{"data":{"backer_id":"b"}}',
}

const stats = (projects_total: number) => ({
  ...{
    currency: 'USD',
    total_raised: 11,
    total_pledges: 1,
    total_backers: 1,
    total_creators: Math.min(1, projects_total),
    projects_total,
  },
  ...{ projects_live: projects_total, projects_funded: 0, success_rate: 0, average_pledge: 11 },
  ...{
    categories: [{ category: 'Games', project_count: projects_total }],
    generated_at: '2026-11-01T00:00:00.000Z',
  },
})
const requests = (log: Writer, count: number) => {
  for (let n = 0; n < count; n++) log.answer(n * 100, { path: '/stats', process: n % 2 })
}

/** The rule that finds it, the safeguard that is taken out, and what a service does with it and without. */
export type Mutant = readonly [
  rule: string,
  without: string,
  good: (log: Writer) => void,
  bad: (log: Writer) => void,
]

export const mutants: readonly Mutant[] = [
  [
    'rows',
    'the fold counts each pledge once',
    log => log.list(10, 5, [log.row([c1(1), p0(1, 1), p1], 3)]),
    log => log.list(10, 5, [log.row([c1(1), p0(1, 1), p1], 3, { pledged_amount: 0.08 })]),
  ],
  [
    'rows',
    'offsets are committed after the rows: a pledge is lost that was shown',
    log => log.list(100, 50, [log.row([c1(1), p0(1, 1), p1], 3)]),
    log => {
      log.list(10, 5, [log.row([c1(1), p0(1, 1), p1], 3)])
      log.list(100, 50, [log.row([c1(1), p0(1, 1)], 40)])
    },
  ],
  [
    'rows',
    'a campaign changes in one step: a title without its amount',
    log => log.list(10, 5, [log.row([c1(2), p0(2, 3)], 3)]),
    log => log.list(10, 5, [log.row([c1(2), p0(2, 3)], 3, { percent_funded: 99 })]),
  ],
  [
    'rows',
    'the fold fence: an older state comes back',
    log => {
      log.list(10, 5, [log.row([c1(1)], 3)])
      log.list(100, 90, [log.row([c1(2)], 80)])
    },
    log => {
      log.list(10, 5, [log.row([c1(2)], 3)])
      log.list(100, 90, [log.row([c1(1)], 80)])
    },
  ],
  [
    'rows',
    'a state that is not public is not shown',
    log => log.list(10, 5, [log.row([c1(1)], 3)]),
    log =>
      log.list(10, 5, [log.row([c1(1)], 3, { title: 'state 3', status: 'SUSPENDED' as Project['status'] })]),
  ],
  [
    'rows',
    'an answer is whole or an error: a shard is away, and is left out of the statistics',
    log => {
      log.list(10, 5, [log.row([c1(1)], 3)])
      log.answer(100, { path: '/stats', stats: stats(1) })
    },
    log => {
      log.list(10, 5, [log.row([c1(1)], 3)])
      log.answer(100, { path: '/stats', stats: { ...stats(0), categories: [] } })
    },
  ],
  [
    'rows',
    'a cache ends after its time: a campaign is shown whose removal was read before',
    log => log.removed(100, 90, [60]),
    log => {
      log.removed(100, 90, [60])
      log.answer(200, { path: '/projects/slug-c1', rows: [log.row([c1(2)], 3)] })
    },
  ],
  [
    'watermark',
    'the watermark passes no statement that runs: an answer as of later lacks a change that was stamped before',
    log => {
      log.list(100, 50, [log.row([c1(1)], 3)])
      log.list(200, 150, [log.row([c1(2)], 60)])
    },
    log => {
      log.list(100, 90, [log.row([c1(1)], 3)])
      log.list(200, 150, [log.row([c1(2)], 60)])
    },
  ],
  [
    'watermark',
    'the same in a delta: the change is left out',
    log => {
      log.list(100, 90, [], { path: '/projects?limit=100&updated_since=2026-11-01T00:00:00.095Z' })
      log.list(200, 150, [log.row([c1(2)], 100)])
    },
    log => {
      log.list(100, 90, [], { path: '/projects?limit=100&updated_since=2026-11-01T00:00:00.050Z' })
      log.list(200, 150, [log.row([c1(2)], 60)])
    },
  ],
  [
    'watermark',
    'a withdrawal is folded as any change: a hidden campaign is shown after its removal',
    log => log.removed(100, 90, [60]),
    log => {
      log.removed(100, 90, [60])
      log.list(110, 95, [log.row([c1(2)], 3)])
    },
  ],
  [
    'watermark',
    'removals are written before the watermark',
    log => {
      log.removed(50, 40, [])
      log.removed(100, 90, [60])
    },
    log => {
      log.removed(95, 80, [])
      log.removed(100, 90, [60])
    },
  ],
  [
    'watermark',
    'the cache is of one generation: an answer of the one before it comes again',
    log => {
      log.list(100, 90, [])
      log.list(200, 90, [])
    },
    log => {
      log.list(100, 90, [])
      log.list(200, 50, [])
    },
  ],
  [
    'snapshot',
    'pages come from one snapshot',
    log => log.list(10, 5, [log.row([c1(1)], 3)]),
    log => {
      const rows = [log.row([c1(1)], 3)]
      const page = { total: 2, limit: 1, offset: 0, has_more: true }
      log.list(10, 5, rows, { snapshot: 's', path: '/projects?limit=1', page })
      const next = { ...page, offset: 1, has_more: false }
      log.list(30, 5, rows, { snapshot: 's', path: '/projects?limit=1&offset=1', page: next })
    },
  ],
  [
    'revoked',
    'revocations are read past the fold',
    log => {
      log.revoke(0)
      log.ready(1_900)
      log.answer(2_500, { path: '/stats', expected: [200, 401] })
      log.ready(2_600)
      log.answer(2_700, { path: '/stats', expected: [200, 401], status: 401 })
    },
    log => {
      log.revoke(0)
      log.ready(2_000)
      log.answer(2_100, { path: '/stats', expected: [200, 401] })
    },
  ],
  [
    'revoked',
    'a key lives until it is revoked: a process refuses one that it admitted',
    log => {
      log.answer(100, { path: '/stats', expected: [200, 401] })
      log.revoke(200)
      log.answer(300, { path: '/stats', expected: [200, 401], status: 401 })
    },
    log => {
      log.answer(100, { path: '/stats', expected: [200, 401] })
      log.answer(300, { path: '/stats', expected: [200, 401], status: 401 })
      log.revoke(500)
    },
  ],
  ['limit', 'the limiter counts over all processes', log => requests(log, 120), log => requests(log, 121)],
  [
    'answers',
    'errors only while something is away',
    log => {
      log.disturb('errors', 0, 100)
      log.answer(50, { status: 500 })
    },
    log => {
      log.disturb('errors', 0, 40)
      log.answer(50, { status: 500 })
    },
  ],
  [
    'answers',
    'statistics come from one statement',
    log => log.answer(50, { path: '/stats', stats: stats(0) }),
    log => log.answer(50, { path: '/stats', stats: { ...stats(0), average_pledge: 12 } }),
  ],
  [
    'answers',
    'a cached answer tells its age: statistics are older than they say',
    log => log.answer(5_000, { path: '/stats', stats: stats(0), ageMs: 5_000 }),
    log => log.answer(5_000, { path: '/stats', stats: stats(0), ageMs: 3_000 }),
  ],
  [
    'whole',
    'a filter counts what it shows: a total is too low',
    log => {
      log.quiet(900, 1_000)
      log.list(950, 940, [log.row(common, 3)], { path: '/projects?status=LIVE' })
    },
    log => {
      log.quiet(900, 1_000)
      log.list(950, 940, [], { path: '/projects?status=LIVE' })
    },
  ],
  [
    'whole',
    'lists have their order: the newest comes last',
    log => {
      log.say(-900, c2)
      log.quiet(900, 1_000)
      log.list(950, 940, [log.row(common, 3), log.row([c2], 3)], { path: '/projects?status=LIVE' })
    },
    log => {
      log.say(-900, c2)
      log.quiet(900, 1_000)
      log.list(950, 940, [log.row([c2], 3), log.row(common, 3)], { path: '/projects?status=LIVE' })
    },
  ],
  [
    'whole',
    'all is folded: in a quiet time a list lacks the last change',
    log => {
      log.quiet(900, 1_000)
      log.list(950, 940, [log.row(common, 3)])
    },
    log => {
      log.quiet(900, 1_000)
      log.list(950, 940, [log.row([c1(2), p0(2, 3)], 3)])
    },
  ],
  [
    'whole',
    'the digest follows each change: that of a first page is of another stamp',
    log => {
      log.quiet(900, 1_000)
      log.list(950, 940, [log.row(common, 3)])
    },
    log => {
      log.quiet(900, 1_000)
      const digest = digestOf(log.log.rows[log.row(common, 4)])
      log.list(950, 940, [log.row(common, 3)], { digest })
    },
  ],
  [
    'stamps',
    'a rebuild keeps the stamps: the same row has a later one',
    log => [50, 200].map(at => log.list(at, at - 5, [log.row(common, 3)])) && log.quiet(0, 300),
    log =>
      [3, 160].map(stamp => log.list(50 + stamp, 45 + stamp, [log.row(common, stamp)])) && log.quiet(0, 300),
  ],
  [
    'mirror',
    'a mirror misses no change',
    log => log.copy(log.row(common, 3)),
    log => log.copy(log.row([c1(1), p0(2, 3), p1], 3)),
  ],
  [
    'mirror',
    'a mirror drops what is gone: it has a removal',
    log => log.copy(),
    log => log.copy(log.row([c1(1)], 3)),
  ],
  [
    'invariants',
    'what a process asserts of itself holds',
    log => log.broken(),
    log => log.broken('key-window'),
  ],
  [
    'answers',
    'a response has the fields of the allowlist, and the headers of every response',
    log => log.answer(0, { path: '/stats', stats: stats(0) }),
    log => log.answer(0, { path: '/stats', ...contentOf('/stats', leaking, () => 0) }),
  ],
]

/** The two logs of a mutant. */
export function logsOf([, without, good, bad]: Mutant): { good: Log; bad: Log } {
  const logOf = (write: (log: Writer) => void) => {
    const writer = createWriter()
    writer.say(-1_000, ...common, ...(without.includes('removal') ? [hidden] : []))
    write(writer)
    return writer.log
  }
  return { good: logOf(good), bad: logOf(bad) }
}
