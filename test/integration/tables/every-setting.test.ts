/**
 * Proves that no setting that an analyst may send changes which rows a view shows: every setting that this version of ClickHouse
 * knows, on the query and on a subquery, whose settings ClickHouse does not check, on one server and on two shards. Nothing is
 * merged, so the tables hold campaigns as they were before, deleted ones and hidden ones. Some conditions fail on what must not be
 * shown. Then the error, which names the value, is the answer.
 *
 * A question is asked with many settings at once, and with fewer only if the answer is another one. So two settings of one question
 * whose effects cancel each other out would not be found.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import { distributedDatabases } from '../../../services/tables/schema/cluster.ts'
import { migrate } from '../../../services/tables/schema/migrate.ts'
import { definerUser, readRole } from '../../../services/tables/schema/roles.ts'
import { askAsAnalyst } from '../../support/clickhouse/analyst.ts'
import { askClickHouse, type ClickHouse, openOwnTables } from '../../support/clickhouse/clickhouse.ts'
import {
  type Assignment,
  everySetting,
  findDifferences,
  nameOf,
} from '../../support/clickhouse/every-setting.ts'
import { publicViews } from '../../support/clickhouse/public-views.ts'
import { endDays, whatIsShown, writeUnmerged } from '../../support/clickhouse/settings-world.ts'
import { type ShardServers, startShards } from '../../support/clickhouse/shards.ts'

const { views } = defaultDatabases
const askMsMax = 30_000
const timeout = 900_000
// With so many of all values there may be no answer. Otherwise the test would pass if everything were refused.
const refusedShareMax = 0.03
// They cut or filter the answer to the query that has them, as LIMIT and WHERE do. They do not go through a view.
const ofTheAnswer = /^(limit|offset|additional_result_filter) = /
// On shards, sums come for each shard by itself. An analyst may read those anyway.
const ofTheShards = /^distributed_group_by_no_merge = /
// With these, only a fast machine answers: after the first second, max_execution_speed = 1 reads one row a second.
const needsSpeed =
  /^((max|min|max_estimated|timeout_before_checking)_execution_(speed|time)|max_os_cpu_wait|(connect|receive|send)_timeout)/
const harmless = 'max_execution_time = 60'
// The settings of a query as a view sees them, apart from the defaults.
const settingsWithin = `SELECT toString(arraySort(groupArray(name))) AS names FROM ${views}.settings_within`

// ClickHouse refuses some settings on a query, but not on a subquery.
const onBoth = (question: string, given: string) =>
  `SELECT names FROM (${question} SETTINGS ${given}) SETTINGS ${given}`
const onSubquery = (question: string, given: string) => `SELECT names FROM (${question} SETTINGS ${given})`
type Place = typeof onBoth

// It shows nothing: there is no answer. But on shards it takes all memory of a server, and a subquery may have it.
const takesAllMemory = 'aggregation_memory_efficient_merge_threads = 18446744073709551615'

// Each takes a few milliseconds, on a busy machine a second. The conditions of the first are those that read an index.
const questions = [
  {
    question: whatIsShown(
      view => view === 'campaigns',
      condition => condition.startsWith('slug '),
    ),
    atOnce: 25,
  },
  ...publicViews.map(name => ({ question: whatIsShown(view => view === name), atOnce: 300 })),
]
// What a category had on a day stays if its campaign is hidden later.
const mustNotBeShown = /old|gone|^(?!category_funding_days).*hidden/m
const namedByError = /Cannot parse string '(?:old|gone|hidden)-/

let one: Awaited<ReturnType<typeof openOwnTables>>
let shards: ShardServers
let settings: number
/** What ClickHouse accepts in each place. What it refuses in both is left out. */
const accepted = new Map<Place, Assignment[]>()
/** What a view has seen. */
const seen = new Set<string>()

beforeAll(async () => {
  ;[one, shards] = await Promise.all([openOwnTables({ analyst: { password: '' } }), startShards(2)])
  await migrate(one.tables, defaultDatabases, { viewsDefiner: definerUser })
  await askClickHouse(
    one.clickHouse,
    `CREATE VIEW ${views}.settings_within DEFINER = ${definerUser} SQL SECURITY DEFINER AS SELECT concat(name, ' = ', value) AS name FROM system.settings WHERE value != default`,
  )
  for (const server of [one.clickHouse, ...shards.servers]) {
    await askClickHouse(server, 'SYSTEM STOP MERGES')
    await endDays(server)
  }
  await writeUnmerged(one.clickHouse, defaultDatabases)
  await writeUnmerged(first(), distributedDatabases(defaultDatabases))
  const every = await everySetting(one.clickHouse)
  settings = every.settings
  let { assignments } = every
  for (const place of [onBoth, onSubquery]) {
    const asking = asker(one.clickHouse, 'analyst', place)(settingsWithin)
    const { answer: expected = '' } = await asking(harmless)
    expect(expected).toContain("'readonly = 1'")
    const { answered, different, refused } = await findDifferences(assignments, 50, expected, asking)
    accepted.set(place, [...answered, ...different.map(({ assignment }) => assignment)])
    for (const { assignment } of different) if (!ofTheAnswer.test(assignment)) seen.add(nameOf(assignment))
    assignments = refused
  }
}, timeout)

afterAll(async () => {
  await Promise.all([one?.close(), shards?.stop()])
})

test('a view ignores every setting of a query, except for those that the definer lets through', () => {
  const counts = [...accepted.values()].map(assignments => assignments.length)
  console.info(`${settings} settings; values accepted on a query, and only on a subquery: ${counts}`)
  // One analyzer works on the whole query, views included. The test below asks with both of its values.
  const ofTheQuery = ['allow_experimental_analyzer', 'compatibility']
  expect(seen).toEqual(new Set([...readRole(definerUser, defaultDatabases).changeable, ...ofTheQuery]))
  expect(settings).toBeGreaterThan(1_500)
  expect(Math.min(...counts)).toBeGreaterThan(20)
  expect(counts.reduce((sum, count) => sum + count)).toBeGreaterThan(2_500)
})

test('an analyst changes nothing that bounds the queries of all analysts together', () => {
  // They refuse only the query that has them.
  const ofOneQuery = /^max_(concurrent_queries_for_all_users|sessions_for_user) /
  const ofAll = accepted.get(onBoth)?.filter(assignment => /_for_(all_)?users? = [1-9]/.test(assignment))
  expect(ofAll?.filter(assignment => !ofOneQuery.test(assignment))).toEqual([])
})

/** Those with which there was no answer. */
const refused = new Set<Assignment>()
/** To ask with these alone takes fewer questions than to find them among others. */
const isAskedAlone = (assignment: Assignment) =>
  refused.has(assignment) || [ofTheAnswer, ofTheShards, needsSpeed].some(one => one.test(assignment))

test.each([
  ['one server', () => one.clickHouse, 'analyst'],
  ['two shards', first, 'pledgeview_analyst'],
] as const)(
  'on %s, no setting changes which rows the views show',
  async (name, server, user) => {
    let unanswered = 0
    const late: Assignment[] = []
    for (const [place, all] of accepted) {
      let assignments = all.filter(assignment => assignment !== takesAllMemory)
      for (const { question, atOnce } of questions) {
        const asking = asker(server(), user, place)(question)
        const { answer: expected = '' } = await asking(harmless)
        expect(expected).toMatch(/./)
        expect(expected).not.toMatch(mustNotBeShown)
        const { true: alone = [], false: together = [] } = Object.groupBy(assignments, assignment =>
          isAskedAlone(assignment) ? 'true' : 'false',
        )
        const found = [
          await findDifferences(alone, 1, expected, asking),
          await findDifferences(together, atOnce, expected, asking),
        ]
        for (const { answer } of found.flatMap(one => one.different))
          expect(answer).not.toMatch(mustNotBeShown)
        const different = found.flatMap(one => one.different.map(({ assignment }) => assignment))
        expect(different.filter(one => !ofTheAnswer.test(one) && !ofTheShards.test(one))).toEqual([])
        // The question can tell: this cuts its answer.
        const cuts = assignments.filter(assignment => assignment === 'offset = 1')
        expect(different).toEqual(expect.arrayContaining(cuts))
        const without = found.flatMap(one => one.refused)
        for (const assignment of without) refused.add(assignment)
        unanswered += without.length
        late.push(...found.flatMap(one => one.late))
        // One question is enough for those that are asked alone: they take most of the time.
        const answered = found.flatMap(one => one.answered)
        assignments = [...cuts, ...answered.filter(assignment => !isAskedAlone(assignment))]
      }
    }
    const values = [...accepted.values()].flat().length
    console.info(`${name}: no answer with ${unanswered} of ${values} values, and not in time with: ${late}`)
    expect(unanswered).toBeLessThan(refusedShareMax * values)
  },
  timeout,
)

function asker({ url }: ClickHouse, user: string, place: Place) {
  return (question: string) => async (given: string) => {
    const query = `${place(question, given)} FORMAT RawBLOB`
    const { status, text } = await askAsAnalyst(url, query, { user, msMax: askMsMax })
    return status === 200 || namedByError.test(text)
      ? { answer: text }
      : { refusal: text, late: status === 0 }
  }
}

function first(): ClickHouse {
  const [server] = shards.servers
  if (!server) throw new Error('there is no server')
  return server
}
