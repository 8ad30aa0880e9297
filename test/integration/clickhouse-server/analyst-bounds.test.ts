/**
 * Proves that an analyst gets no more than a share of the server, even with the settings that ClickHouse lets a query reset or
 * does not check. The projector and readers continue under the worst queries that analysts can send.
 */
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { heldStatement, killStatement } from '../../../services/clickhouse-server/analysts.ts'
import { analystBounds, type ServerConfiguration } from '../../../services/clickhouse-server/configuration.ts'
import { openDataDirectory } from '../../../services/embedded/data-directory.ts'
import { type EmbeddedModel, openEmbeddedModel } from '../../../services/embedded/model.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { askAsAnalyst } from '../../support/clickhouse/analyst.ts'
import { openOwnTables } from '../../support/clickhouse/clickhouse.ts'
import { freeDoor, makeTestDirectory, type TestDirectory } from '../../support/clickhouse/embedded-tables.ts'
import { askUnread } from '../../support/clickhouse/native-protocol.ts'
import { campaignEvent, newRecordOf, pledgeEvent } from '../../support/events/sample-events.ts'

const memoryBytesMax = 2_000_000_000
const cores = availableParallelism()
const configuration = { memoryBytesMax, cores, databases: defaultDatabases } as ServerConfiguration
const bounds = analystBounds(configuration)
const waits = { timeout: 60_000, interval: 20 }
const analystsAtOnce = 20
/**
 * A set of 20 million numbers takes more than a quarter of the memory, and is held for 24 seconds: longer than the watch of a
 * busy machine takes for a look.
 */
const holdsMemory = `SELECT sum(sleepEachRow(0.04)) FROM (SELECT number FROM numbers(600) SETTINGS max_block_size = 10)
  WHERE number IN (SELECT number FROM numbers(20000000))`
const lifted = ['workload', ...bounds.map(({ name }) => name)]
  .filter(name => name !== 'max_execution_time')
  .map(name => `${name} = DEFAULT`)
  .join(', ')

describe('of an analyst', () => {
  let directory: TestDirectory
  let model: EmbeddedModel
  let url: string
  let unread: Promise<unknown>

  beforeAll(async () => {
    // On its own server, beside the other tests: it takes half a minute.
    unread = untilUnreadEnds().catch((error: unknown) => error)
    directory = makeTestDirectory()
    model = await openEmbeddedModel({
      directory: openDataDirectory(directory.path),
      config: readConfig({ PLEDGEVIEW_CLICKHOUSE_MEMORY_BYTES_MAX: String(memoryBytesMax) }),
      sql: freeDoor,
      metrics: createMetrics(),
      logger: pino({ level: 'silent' }),
    })
    url = model.door?.url ?? ''
    await model.tables.run({
      query: `INSERT INTO pledgeview_read_1.campaigns (campaign_id, status, title, description)
              SELECT toString(number), 'LIVE', randomPrintableASCII(40), randomPrintableASCII(2000)
              FROM numbers(20000) SETTINGS async_insert = 0`,
    })
  })

  afterAll(async () => {
    await model.close()
    directory.remove()
  })

  // Otherwise a bound that is taken out of the role would take its test with it.
  test('has all of these bounds', () => {
    expect(bounds.map(({ name }) => name).join(' ')).toBe(
      'max_execution_time max_memory_usage max_memory_usage_for_user memory_overcommit_ratio_denominator_for_user max_temporary_data_on_disk_size_for_user max_network_bandwidth_for_user max_network_bandwidth_for_all_users max_threads max_rows_to_read max_result_rows max_result_bytes max_concurrent_queries_for_user cancel_http_readonly_queries_on_client_close function_sleep_max_microseconds_per_block os_threads_nice_value_query use_concurrency_control aggregation_memory_efficient_merge_threads workload skip_unavailable_shards format_avro_schema_registry_url allow_ddl allow_introspection_functions',
    )
  })

  describe.each(bounds)('$name', ({ name, value, range }) => {
    const above = range && String(Number(range.max) + 1)
    const beyond = above === undefined ? [another(value)] : range?.min === '0' ? [above] : [above, '0']

    test.each(beyond)('cannot be %s: neither on a query, nor in the URL, nor in a session', async wanted => {
      const literal = Number.isNaN(Number(wanted)) ? `'${wanted}'` : wanted
      const answers = [
        await askAsAnalyst(url, `SELECT 1 SETTINGS ${name} = ${literal}`),
        await askAsAnalyst(url, `SET ${name} = ${literal}`, { parameters: { session_id: name } }),
        await askAsAnalyst(url, 'SELECT 1', { parameters: { [name]: wanted } }),
        await askAsAnalyst(url, 'SELECT 1', { parameters: { profile: 'default', [name]: wanted } }),
      ]
      for (const { text } of answers) expect(text).toMatch(/SETTING_CONSTRAINT_VIOLATION|QUERY_IS_PROHIBITED/)
      const { text } = await askAsAnalyst(url, `SELECT toString(getSetting('${name}'))`)
      expect([value, { 1: 'true', 0: 'false' }[value]]).toContain(text.trim())
    })
  })

  test.each([
    ['bytes of a result', "SELECT repeat('a', 900 + number % 2) FROM numbers(9000000) FORMAT Null", 396],
    [
      'time',
      'SELECT * FROM (SELECT sum(sipHash64(number)) FROM numbers(9000000000) SETTINGS max_execution_time = 300) SETTINGS max_execution_time = 1',
      159,
    ],
    [
      'memory',
      `SELECT * FROM (${holdsMemory} SETTINGS max_memory_usage = 0, max_memory_usage_for_user = 0)`,
      241,
    ],
    [
      'rows of a result',
      'SELECT * FROM (SELECT number FROM numbers(10000001) SETTINGS max_result_rows = 0, max_result_bytes = 0)',
      396,
    ],
    [
      'rows that are read',
      'SELECT * FROM (SELECT count() FROM numbers(90000000000) SETTINGS max_rows_to_read = 0)',
      158,
    ],
  ])('a query that exceeds the bound on %s fails, also where a subquery lifts it', async (_, query, code) => {
    expect(await codeOf(query)).toBe(code)
  })

  test('a query that lifted the bound on memory is ended when it exceeds it', {
    timeout: 300_000,
  }, async () => {
    expect(await codeOf(`${holdsMemory} SETTINGS ${lifted}`)).toBe(394)
  })

  test.each([
    [
      'rows that are read',
      `SELECT count() FROM numbers(90000000000) SETTINGS ${lifted}, max_execution_time = 300`,
    ],
    [
      'time',
      `SELECT sleepEachRow(1) FROM numbers(600) SETTINGS max_block_size = 1, ${lifted}, max_execution_time = DEFAULT`,
    ],
    [
      'disk',
      `SELECT randomString(1000), sleepEachRow(0.001) FROM numbers(90000) SETTINGS max_block_size = 1000, ${lifted}`,
    ],
  ])('the statement that ends excessive queries enforces the bound on %s', async (_, query) => {
    const statement = killStatement(configuration)
    // The same, with bounds that the test can reach quickly.
    const sooner = statement.replace(', 60) + 5', ', 60) - 57').replace(/(BytesTotal'\] >) \d+/, '$1 5000000')
    expect(sooner.match(/ - 57\b| > 5000000\b/g)).toHaveLength(2)
    const ended = codeOf(query)
    await vi.waitFor(async () => expect(await runningQueries()).toBe(1), waits)
    const killing = setInterval(() => void model.tables.run({ query: sooner }).catch(() => {}), 200)
    expect(await ended).toBe(394)
    clearInterval(killing)
  })

  test('a query that does not notice that it was killed is found', async () => {
    const found = heldStatement(configuration)
    // The query asks for one second. So it is found after two, and not after 46.
    const sooner = found.replace(', 60) + 45', ', 60) + 1')
    expect(sooner).not.toBe(found)
    const held = async () => Object.values((await model.tables.rows<object>({ query: sooner }))[0] ?? {})[0]
    expect(await held()).toBe('')
    // Each row takes seconds, and ClickHouse does not look up before both are done.
    const long = (letters: string) => `repeat('${letters}', 30000)`
    const ended = codeOf(
      `SELECT levenshteinDistance(${long('ab')} || toString(number), ${long('ba')}) FROM numbers(2) SETTINGS max_execution_time = 1`,
    )
    await vi.waitFor(async () => expect(await held()).toMatch(/^a slot: /), waits)
    await model.tables.run({ query: "KILL QUERY WHERE user = 'analyst' ASYNC" })
    await sleep(1_000)
    expect(await held()).toMatch(/^a slot: /)
    await ended
    expect(await held()).toBe('')
  })

  test('queries that asked for more time than usual keep it until they hold all slots and another one waits', async () => {
    // The usual time is one second here, and not 60.
    const query = killStatement(configuration)
      .replaceAll(/(?<=[>,] )60\b/g, '1')
      .replace(' + 5', '')
    const sleeping =
      'SELECT sleepEachRow(0.1) FROM numbers(6000) SETTINGS max_block_size = 1, max_execution_time = 300'
    const slots = Math.max(2, Math.floor(cores / 4))
    const slow = Array.from({ length: slots }, () => codeOf(sleeping))
    const usual = `SELECT countIf(elapsed > 1) AS slow FROM system.processes WHERE user = 'analyst'`
    await vi.waitFor(
      async () => expect(await model.tables.rows({ query: usual })).toEqual([{ slow: slots }]),
      waits,
    )
    await model.tables.run({ query })
    expect(await runningQueries()).toBe(slots)
    const other = askAsAnalyst(url, 'SELECT 1')
    const killing = setInterval(() => void model.tables.run({ query }).catch(() => {}), 200)
    expect(await Promise.all(slow)).toEqual(slow.map(() => 394))
    clearInterval(killing)
    expect(await other).toMatchObject({ status: 200, text: '1\n' })
  })

  test('at most as many queries run at once as the role allows, even if they lift that bound', async () => {
    const atOnceMax = Number(bounds.find(({ name }) => name === 'max_concurrent_queries_for_user')?.value)
    const more = 15
    const sleeping = `SELECT sleepEachRow(0.1) FROM numbers(1200) SETTINGS max_block_size = 1, ${lifted}, max_execution_time = 300`
    let refused = 0
    const asking = Array.from({ length: atOnceMax + more }, async () => {
      const { status, text } = await askAsAnalyst(url, sleeping)
      if (status !== 200 && !/QUERY_WAS_CANCELLED/.test(text)) refused++
    })
    await vi.waitFor(() => expect(refused).toBeGreaterThanOrEqual(more), waits)
    expect(await runningQueries()).toBeLessThanOrEqual(atOnceMax)
    expect(await runningQueries()).toBeGreaterThan(0)
    await endUntil(Promise.all(asking))
  })

  test('a query that sleeps longer than its role allows leaves a slot to others', async () => {
    // ClickHouse does not check the settings of a subquery.
    const lifted = 'function_sleep_max_microseconds_per_block = 0'
    const asleep = askAsAnalyst(url, `SELECT * FROM (SELECT sleep(20) SETTINGS ${lifted})`)
    await vi.waitFor(async () => expect(await runningQueries()).toBe(1), waits)
    expect(await askAsAnalyst(url, 'SELECT 1')).toMatchObject({ status: 200, text: '1\n' })
    expect(await runningQueries()).toBe(1)
    await endUntil(asleep)
  })

  const worst = [
    'SELECT count(), max(concat(a.title, b.title)) FROM crowdfunding.campaigns AS a CROSS JOIN crowdfunding.campaigns AS b',
    'SELECT * FROM crowdfunding.campaigns ORDER BY cityHash64(description), title FORMAT Null',
    'SELECT campaign_id, groupArray(description) FROM crowdfunding.campaigns GROUP BY campaign_id ORDER BY sipHash64(campaign_id) FORMAT Null',
    'SELECT number FROM numbers(9000000000) ORDER BY sipHash64(number) FORMAT Null',
  ]

  test.each([
    [' that lift every bound that a query can lift', `${lifted}, max_execution_time = 300`],
    [' that ask for many threads and all memory in a subquery', undefined],
  ])(
    `the projector and readers continue beside ${analystsAtOnce} of them${'%s'}`,
    { timeout: 240_000 },
    async (_, settings) => {
      const over = new AbortController()
      const pid = model.clickHouse.pid()
      async function keepAsking(analyst: number): Promise<void> {
        for (let n = analyst; !over.signal.aborted; n++) {
          await askAsAnalyst(url, withSettings(worst[n % worst.length] ?? '', settings)).catch(() => {})
        }
      }
      const asking = Array.from({ length: analystsAtOnce }, (_, analyst) => keepAsking(analyst))
      for (let round = 1; round <= 3; round++) {
        // One query runs, or as many as there are cores for analysts, and the others wait.
        await vi.waitFor(async () => expect(await runningQueries()).toBeGreaterThan(0), waits)
        const campaign_id = `new ${round} ${settings?.length}`
        await model.writer.append([
          newRecordOf(campaignEvent({ campaign_id })),
          newRecordOf(pledgeEvent({ campaign_id, pledge_id: 'p' })),
        ])
        await model.whenDrained()
        const query =
          'SELECT pledge_count FROM crowdfunding.campaigns WHERE campaign_id = {campaign_id:String}'
        expect(await model.tables.rows({ query, query_params: { campaign_id } })).toEqual([
          { pledge_count: 1 },
        ])
      }
      over.abort()
      await endUntil(Promise.all(asking))
      expect(model.clickHouse.pid()).toBe(pid)
      expect(model.clickHouse.outage()).toBeUndefined()
    },
  )

  test('a query whose result nobody reads in the native protocol ends after it was killed', async () =>
    expect(await unread).toBeUndefined())

  /** The code of the ClickHouse error that ends the query. */
  async function codeOf(query: string): Promise<number> {
    const { text } = await askAsAnalyst(url, query, { parameters: { wait_end_of_query: 1 } })
    return Number(/Code: (\d+)/.exec(text)?.[1])
  }

  async function runningQueries(tables: Pick<Tables, 'rows'> = model.tables): Promise<number> {
    const query = "SELECT count() AS running FROM system.processes WHERE user = 'analyst'"
    const [row] = await tables.rows<{ running: number }>({ query })
    return row?.running ?? 0
  }

  async function untilUnreadEnds(): Promise<void> {
    const { tables, clickHouse, close } = await openOwnTables({ nativePort: 0, analyst: { password: '' } })
    const address = { port: clickHouse.nativePort ?? 0, user: 'analyst', password: '' }
    await askUnread(address, "SELECT repeat('a', 999) FROM numbers(300000)")
    await vi.waitFor(async () => expect(await runningQueries(tables)).toBe(1), waits)
    await sleep(2_000)
    await tables.run({ query: "KILL QUERY WHERE user = 'analyst' ASYNC" })
    // ClickHouse itself waits for 300 seconds.
    await vi.waitFor(async () => expect(await runningQueries(tables)).toBe(0), waits)
    await close()
  }

  /** Ends queries in a loop: a query that still waits for a slot cannot be ended yet. */
  async function endUntil(answered: Promise<unknown>): Promise<void> {
    const over = new AbortController()
    const done = answered.finally(() => over.abort())
    while (!over.signal.aborted) {
      await model.tables.run({ query: "KILL QUERY WHERE user = 'analyst' ASYNC" })
      await sleep(50, undefined, { signal: over.signal }).catch(() => {})
    }
    await done
  }
})

/** Without given settings, the query runs as a subquery with settings, which ClickHouse does not check. */
function withSettings(query: string, settings: string | undefined): string {
  if (settings !== undefined) return query.replace(/( FORMAT Null)?$/, ` SETTINGS ${settings}$1`)
  const inner = "max_threads = 32, max_memory_usage = 0, use_concurrency_control = 0, workload = 'program'"
  return `SELECT * FROM (${query.replace(' FORMAT Null', '')} SETTINGS ${inner}) FORMAT Null`
}

/** Another value, for a setting without a range. */
function another(value: string): string {
  if (value === '' || Number.isNaN(Number(value))) return 'http://another'
  return value === '1' ? '0' : '1'
}
