/**
 * Small logs that are made by hand: for each rule, the log of a service that keeps the promise, and the log of one from which a safeguard
 * was taken out. So the checker itself is checked, in CI and at the start of each proof.
 */
import type { Stats } from '../../../contracts/api/client/bodies.ts'
import type { Project } from '../../../contracts/api/schemas.ts'
import { campaignEvent, pledgeEvent } from '../../support/events/sample-events.ts'
import { contentOf } from '../stage/recorder.ts'
import { check } from './check.ts'
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

const stats = (count: number, more: Partial<Stats> = {}): Stats => ({
  ...{ currency: 'USD', total_raised: 11, total_pledges: 1, total_backers: 1, average_pledge: 11 },
  ...{ projects_total: count, projects_live: count, projects_funded: 0, success_rate: 0 },
  ...{ total_creators: count, generated_at: '2026-11-01T00:00:00.000Z' },
  categories: [{ category: 'Games', project_count: count }],
  ...more,
})
const leaking = {
  status: 200,
  headers: { 'x-request-id': '12345678', 'access-control-allow-origin': '*' },
  body: '{"data":{"backer_id":"b"}}',
}
const isKnown = { path: '/stats', expected: [200, 401] }
const live = { path: '/projects?status=LIVE' }

/** What a service writes with the safeguard, or without: then it is bad. */
type Write = (log: Writer, isBad: boolean) => void

/** By the rule that finds it: the safeguard that is taken out. */
const writes: Readonly<Record<string, Readonly<Record<string, Write>>>> = {
  rows: {
    'the fold counts each pledge once': (log, isBad) =>
      log.list(10, 5, [log.row([c1(1), p0(1, 1), p1], 3, isBad ? { pledged_amount: 0.08 } : {})]),
    'offsets are committed after the rows: a pledge is lost that was shown': (log, isBad) => {
      log.list(10, 5, [log.row([c1(1), p0(1, 1), p1], 3)])
      log.list(100, 50, [log.row([c1(1), p0(1, 1), ...(isBad ? [] : [p1])], 40)])
    },
    'a campaign changes in one step: a title without its amount': (log, isBad) =>
      log.list(10, 5, [log.row([c1(2), p0(2, 3)], 3, isBad ? { percent_funded: 99 } : {})]),
    'the fold fence: an older state comes back': (log, isBad) => {
      log.list(10, 5, [log.row([c1(isBad ? 2 : 1)], 3)])
      log.list(100, 90, [log.row([c1(isBad ? 1 : 2)], 80)])
    },
    'a state that is not public is not shown': (log, isBad) => {
      const change = { title: 'state 3', status: 'SUSPENDED' as Project['status'] }
      log.list(10, 5, [log.row([c1(1)], 3, isBad ? change : {})])
    },
    'an answer is whole or an error: a shard is away, and is left out of the statistics': (log, isBad) => {
      log.list(10, 5, [log.row([c1(1)], 3)])
      log.answer(100, { path: '/stats', stats: isBad ? stats(0, { categories: [] }) : stats(1) })
    },
    'a cache ends after its time: a campaign is shown whose removal was read before': (log, isBad) => {
      log.removed(100, 90, [60])
      if (isBad) log.answer(200, { path: '/projects/slug-c1', rows: [log.row([c1(2)], 3)] })
    },
  },
  watermark: {
    'the watermark passes no statement that runs: an answer as of later lacks a change that was stamped before':
      (log, isBad) => {
        log.list(100, isBad ? 90 : 50, [log.row([c1(1)], 3)])
        log.list(200, 150, [log.row([c1(2)], 60)])
      },
    'the same in a delta: the change is left out': (log, isBad) => {
      const path = `/projects?limit=100&updated_since=2026-11-01T00:00:00.${isBad ? '050' : '095'}Z`
      log.list(100, 90, [], { path })
      log.list(200, 150, [log.row([c1(2)], isBad ? 60 : 100)])
    },
    'a withdrawal is folded as any change: a hidden campaign is shown after its removal': (log, isBad) => {
      log.removed(100, 90, [60])
      if (isBad) log.list(110, 95, [log.row([c1(2)], 3)])
    },
    'removals are written before the watermark': (log, isBad) => {
      log.removed(isBad ? 95 : 50, isBad ? 80 : 40, [])
      log.removed(100, 90, [60])
    },
    'the cache is of one generation: an answer of the one before it comes again': (log, isBad) => {
      log.list(100, 90, [])
      log.list(200, isBad ? 50 : 90, [])
    },
  },
  snapshot: {
    'pages come from one snapshot': (log, isBad) => {
      const rows = [log.row([c1(1)], 3)]
      const page = { total: 2, limit: 1, offset: 0, has_more: true }
      log.list(10, 5, rows, { snapshot: 's', path: '/projects?limit=1', page })
      const next = { ...page, offset: 1, has_more: false }
      log.list(30, 5, isBad ? rows : [], { snapshot: 's', path: '/projects?limit=1&offset=1', page: next })
    },
  },
  revoked: {
    'revocations are read past the fold': (log, isBad) => {
      log.revoke(0)
      log.ready(isBad ? 2_000 : 1_900)
      log.answer(2_500, isKnown)
      log.ready(2_600)
      log.answer(2_700, { ...isKnown, status: 401 })
    },
    'a key lives until it is revoked: a process refuses one that it admitted': (log, isBad) => {
      log.answer(100, isKnown)
      log.revoke(isBad ? 500 : 200)
      log.answer(300, { ...isKnown, status: 401 })
    },
  },
  limit: {
    'the limiter counts over all processes': (log, isBad) => {
      for (let n = 0; n < (isBad ? 121 : 120); n++) log.answer(n * 100, { path: '/stats', process: n % 2 })
    },
  },
  answers: {
    'errors only while something is away': (log, isBad) => {
      log.disturb('errors', 0, isBad ? 40 : 100)
      log.answer(50, { status: 500 })
    },
    'statistics come from one statement': (log, isBad) =>
      log.answer(50, { path: '/stats', stats: stats(0, isBad ? { average_pledge: 12 } : {}) }),
    'a cached answer tells its age: statistics are older than they say': (log, isBad) =>
      log.answer(5_000, { path: '/stats', stats: stats(0), ageMs: isBad ? 3_000 : 5_000 }),
    'a response has the fields of the allowlist, and the headers of every response': (log, isBad) =>
      log.answer(0, { path: '/stats', ...(isBad ? contentOf('/stats', leaking) : { stats: stats(0) }) }),
  },
  whole: {
    'a filter counts what it shows: a total is too low': (log, isBad) => {
      log.quiet(900, 1_000)
      log.list(950, 940, isBad ? [] : [log.row(common, 3)], live)
    },
    'lists have their order: the newest comes last': (log, isBad) => {
      log.say(-900, c2)
      log.quiet(900, 1_000)
      const rows = [log.row(common, 3), log.row([c2], 3)]
      log.list(950, 940, isBad ? rows.toReversed() : rows, live)
    },
    'all is folded: in a quiet time a list lacks the last change': (log, isBad) => {
      log.quiet(900, 1_000)
      log.list(950, 940, [log.row(isBad ? [c1(2), p0(2, 3)] : common, 3)])
    },
    'the digest follows each change: that of a first page is of another stamp': (log, isBad) => {
      log.quiet(900, 1_000)
      log.list(950, 940, [log.row(common, 3)], { digest: digestOf(log.row(common, isBad ? 4 : 3)) })
    },
  },
  stamps: {
    'a rebuild keeps the stamps: the same row has a later one': (log, isBad) => {
      for (const later of [0, 150]) log.list(50 + later, 45 + later, [log.row(common, isBad ? 3 + later : 3)])
      log.quiet(0, 300)
    },
  },
  mirror: {
    'a mirror misses no change': (log, isBad) => log.copy(log.row(isBad ? [c1(1), p0(2, 3), p1] : common, 3)),
    'a mirror drops what is gone: it has a removal': (log, isBad) =>
      log.copy(...(isBad ? [log.row([c1(1)], 3)] : [])),
  },
  invariants: {
    'what a process asserts of itself holds': (log, isBad) => log.broken(...(isBad ? ['key-window'] : [])),
  },
}

export interface LogMutant {
  rule: string
  /** The safeguard that it has not. */
  without: string
  good: Log
  bad: Log
  /** Whether the checker accepts the good log, and refuses the bad one by the rule. */
  isFound: boolean
}

export function tryLogMutants(): LogMutant[] {
  return Object.entries(writes).flatMap(([rule, all]) =>
    Object.entries(all).map(([without, write]) => {
      const logOf = (isBad: boolean) => {
        const writer = createWriter()
        writer.say(-1_000, ...common, ...(without.includes('removal') ? [hidden] : []))
        write(writer, isBad)
        return writer.log
      }
      const [good, bad] = [logOf(false), logOf(true)]
      const isFound = check(good).length === 0 && check(bad).some(one => one.rule === rule)
      return { rule, without, good, bad, isFound }
    }),
  )
}
