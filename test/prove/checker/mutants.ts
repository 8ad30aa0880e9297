/**
 * A small log, made by hand, of a service that keeps every promise. And mutants of it: what differs in the log of a service from which a
 * safeguard was taken out. So the checker itself is checked, in CI and at the start of each proof.
 */
import type { Project } from '../../../contracts/api/schemas.ts'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { readModelOf } from '../../support/events/model.ts'
import { campaignEvent, pledgeEvent } from '../../support/events/sample-events.ts'
import { expectedProject } from '../../support/faults/api-projects.ts'
import type { Mutant } from '../report.ts'
import { contentOf } from '../stage/recorder.ts'
import { check } from './check.ts'
import type { Answer, Entry, Log, Row } from './log.ts'
import { digestOf } from './whole.ts'

const start = Date.UTC(2026, 10, 1)
const iso = (at: number) => new Date(start + at).toISOString()

const c1 = (version: number) => campaignEvent({ campaign_id: 'c1', version, title: `state ${version}` })
const p0 = (version: number, amount_minor: number) =>
  pledgeEvent({ campaign_id: 'c1', pledge_id: 'p0', version, amount_minor })
const p1 = pledgeEvent({ campaign_id: 'c1', pledge_id: 'p1', amount_minor: 4 })
const older = campaignEvent({ campaign_id: 'c2', launch_date: Date.UTC(2020, 0, 1) })
const gone = campaignEvent({ campaign_id: 'c3' })
const hidden = campaignEvent({ campaign_id: 'c3', version: 2, title: 'hidden', status: 'SUSPENDED' })
const [before, after] = [
  [c1(1), p0(1, 1), p1],
  [c1(2), p0(2, 3), p1],
]

/** The campaign as a list shows it. Times are ms after the start. */
function row(events: readonly ChangeEvent[], stamp: number, change: Partial<Project> = {}): Row {
  const [reading] = readModelOf(events).campaigns.values()
  if (!reading) throw new Error('it is not public')
  return { ...expectedProject(reading), updated_at: iso(stamp), ...change }
}

function answer(at: number, more: Partial<Answer> = {}): Answer {
  return {
    ...{ kind: 'answer', reader: 'r', process: 0, key: 'k', path: '/projects?limit=100', expected: [200] },
    ...{ sentAt: start + at, receivedAt: start + at + 10, status: 200, ageMs: 0, rows: [] },
    ...more,
  }
}

const pageOf = (total: number) => ({ total, limit: 100, offset: 0, has_more: false })
/** A whole list as of a moment. */
const list = (at: number, asOf: number, rows: Row[], more: Partial<Answer> = {}) =>
  answer(at, {
    ...{ asOf: start + asOf, snapshot: `${at}`, rows, page: pageOf(rows.length), digest: digestOf(rows) },
    ...more,
  })
const removalsOf = (at: number, asOf: number, stamps: number[]) => {
  const removals = stamps.map(stamp => ({ id: 'c3', updated_at: iso(stamp) }))
  return list(at, asOf, [], { path: '/removals?limit=100', removals, page: pageOf(stamps.length) })
}
const delta = (since: number) => ({ path: `/projects?limit=100&updated_since=${iso(since)}` })
/** What the audit of a quiet time reads of both processes. */
const auditOf = (at: number, rows: Row[]) => {
  const statistics = answer(at, { path: '/stats', stats: { ...stats, generated_at: iso(at) } })
  const audited = { list: list(at, at - 30, rows), removals: removalsOf(at, at - 30, [60]), statistics }
  return [0, 1].flatMap(process =>
    Object.entries(audited).map(([name, one]): [string, Entry] => [
      `${name} ${at} of ${process}`,
      { ...one, reader: 'the audit', process },
    ]),
  )
}
const requests = (count: number) =>
  Array.from({ length: count }, (_, n): [string, Entry] => [
    `request ${n}`,
    answer(n * 100, { path: '/nowhere', expected: [404], status: 404, key: 'busy', process: n % 2 }),
  ])

const stats = {
  ...{ currency: 'EUR', total_raised: 22, total_pledges: 2, total_backers: 2, average_pledge: 11 },
  ...{ projects_total: 2, projects_live: 2, projects_funded: 0, success_rate: 0, total_creators: 1 },
  ...{ generated_at: iso(0), categories: [{ category: 'Games', project_count: 2 }] },
} as const
const noStats = { ...stats, projects_total: 0, categories: [], generated_at: iso(600) }
const keyed = { path: '/stats', expected: [200, 401], key: 'revoked' }
const leaking = {
  status: 200,
  headers: { 'x-request-id': '12345678', 'access-control-allow-origin': '*' },
  body: '{"data":{"backer_id":"b"}}',
}
const now2 = row([older], 4)
const [early, now1] = [row(before, 3), row(after, 80)]
const half = { total: 2, limit: 1, offset: 0, has_more: true }
const rest = { ...half, offset: 1, has_more: false }

const good: Readonly<Record<string, Entry>> = {
  said: { kind: 'said', at: start - 1_000, events: [c1(1), ...before, ...after, older, gone, hidden] },
  'the first list': list(10, 5, [early, now2, row([gone], 3)]),
  'no removals': removalsOf(50, 40, []),
  removals: removalsOf(100, 90, [60]),
  list: list(120, 90, [now1, now2]),
  delta: list(140, 90, [], delta(85)),
  'page 1': list(160, 90, [now1], { snapshot: 's', path: '/projects?limit=1', page: half }),
  'page 2': list(180, 90, [now2], { snapshot: 's', path: '/projects?limit=1&offset=1', page: rest }),
  statistics: answer(600, { path: '/stats', stats, ageMs: 500 }),
  errors: { kind: 'disturbed', what: 'errors', from: start + 300, to: start + 400 },
  error: answer(350, { status: 500 }),
  quiet: { kind: 'quiet', from: start + 900, to: start + 1_000 },
  'filtered list': list(910, 900, [now1, now2], { path: '/projects?status=LIVE' }),
  'quiet list': list(920, 900, [now1, now2]),
  'later quiet': { kind: 'quiet', from: start + 1_100, to: start + 1_200 },
  'later list': list(1_120, 1_100, [now1, now2]),
  ...Object.fromEntries([930, 1_130].flatMap(at => auditOf(at, [now1, now2]))),
  admitted: answer(1_000, keyed),
  revoked: { kind: 'revoked', askedAt: start + 1_200, at: start + 1_200, key: 'revoked' },
  refused: answer(1_300, { ...keyed, process: 1, status: 401 }),
  'ready in time': {
    kind: 'ready',
    process: 0,
    sentAt: start + 3_100,
    receivedAt: start + 3_110,
    isReady: true,
  },
  'admitted again': answer(3_200, keyed),
  ready: { kind: 'ready', process: 0, sentAt: start + 3_300, receivedAt: start + 3_310, isReady: true },
  'refused by all': answer(3_400, { ...keyed, status: 401 }),
  ...Object.fromEntries(requests(120)),
  copy: { kind: 'copy', mirror: 'r', rows: [now1, now2] },
  assertions: { kind: 'broken', process: 'query 1', names: [] },
}

/** What other entries have, or what else is in the log. */
type Changes = Readonly<Record<string, Partial<Entry>>>

/** By the rule that finds it: the safeguard that is taken out. */
const mutants: Readonly<Record<string, Readonly<Record<string, Changes>>>> = {
  rows: {
    'the fold counts each pledge once': { list: { rows: [row(after, 80, { pledged_amount: 0.1 }), now2] } },
    'offsets are committed after the rows: a pledge is lost that was shown': {
      list: { rows: [row([c1(2), p0(2, 3)], 80), now2] },
    },
    'a campaign changes in one step: a title without its amount': {
      list: { rows: [row(after, 80, { percent_funded: 99 }), now2] },
    },
    'the fold fence: an older state comes back': { 'filtered list': { rows: [row(before, 80), now2] } },
    'a state that is not public is not shown': {
      list: { rows: [now1, row([gone], 80, { title: 'hidden', status: 'SUSPENDED' as Project['status'] })] },
    },
    'an answer is whole or an error: a shard is away, and is left out of the statistics': {
      statistics: { stats: noStats },
    },
    'a cache ends after its time: a campaign is shown whose removal was read before': {
      detail: answer(200, { path: '/projects/slug-c3', rows: [row([gone], 3)] }),
    },
  },
  watermark: {
    'the watermark passes no statement that runs: an answer as of later lacks a change that was stamped before':
      { 'the first list': { asOf: start + 85 } },
    'the same in a delta: the change is left out': { delta: delta(50) },
    'a withdrawal is folded as any change: a hidden campaign is shown after its removal': {
      list: { rows: [now1, now2, row([gone], 3)] },
    },
    'removals are written before the watermark': { 'no removals': { asOf: start + 80 } },
    'the cache is of one generation: an answer of the one before it comes again': {
      'quiet list': { asOf: start + 50 },
    },
  },
  snapshot: { 'pages come from one snapshot': { 'page 2': { rows: [now1] } } },
  revoked: {
    'revocations are read past the fold': { 'ready in time': { sentAt: start + 3_200 } },
    'revocations are read each second: a process reads them each minute, and never says that it is ready': {
      ...{ 'ready in time': { isReady: false }, ready: { isReady: false } },
      'refused by all': answer(31_300, keyed),
    },
    'a key lives until it is revoked: a process refuses one that it admitted': {
      'refused before': answer(1_100, { ...keyed, status: 401 }),
    },
  },
  limit: { 'the limiter counts over all processes': Object.fromEntries(requests(121)) },
  answers: {
    'a detail is of the campaign that was asked for': {
      detail: answer(200, { path: '/projects/slug-c2', rows: [now1] }),
    },
    'errors only while something is away': { errors: { to: start + 340 } },
    'statistics come from one statement': { statistics: { stats: { ...stats, average_pledge: 12 } } },
    'a cached answer tells its age: statistics are older than they say': {
      'old statistics': answer(5_000, { path: '/stats', stats, ageMs: 3_000 }),
    },
    'a response has the fields of the allowlist, and the headers of every response': {
      statistics: contentOf('/stats', leaking),
    },
  },
  whole: {
    'a filter counts what it shows: a total is too low': { 'filtered list': { rows: [], page: pageOf(0) } },
    'a page has all that it counts: a filtered one lacks a row': { 'filtered list': { rows: [now1] } },
    'each process answers in a quiet time: one has nothing but errors': {
      'statistics 1130 of 1': { status: 500 },
    },
    'lists have their order: the newest comes last': { 'filtered list': { rows: [now2, now1] } },
    'all is folded: in a quiet time a list lacks the last change': {
      'quiet list': { rows: [row([c1(2), p0(2, 3)], 80), now2] },
    },
    'the digest follows each change: that of a first page is of another stamp': {
      'quiet list': { digest: digestOf([early, now2]) },
    },
  },
  stamps: {
    'a rebuild keeps the stamps: the same row has a later one': {
      'later list': { rows: [row(after, 95), now2] },
    },
  },
  mirror: {
    'a mirror misses no change': { copy: { rows: [row([c1(2), p0(2, 3)], 80), now2] } },
    'a mirror drops what is gone: it has a removal': { copy: { rows: [now1, now2, row([gone], 3)] } },
  },
  invariants: { 'what a process asserts of itself holds': { assertions: { names: ['key-window'] } } },
}

export const goodLog: Log = Object.values(good)

export function tryLogMutants(): (Mutant & { log: Log })[] {
  return Object.entries(mutants).flatMap(([rule, all]) =>
    Object.entries(all).map(([without, changes]) => {
      const changed = Object.entries(changes).map(([name, more]) => [name, { ...good[name], ...more }])
      const log: Log = Object.values({ ...good, ...Object.fromEntries(changed) })
      return { rule, without, log, isFound: check(log).some(one => one.rule === rule) }
    }),
  )
}
