/** ClickHouse unavailable, slow or overloaded: what the API answers, and what it never reveals. */
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import { startQueryService } from '../../../services/query/service.ts'
import { memoryState } from '../../../services/query/shared-state.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { followedDatabases } from '../../../services/tables/generation-log.ts'
import { defaultNames, type Tables, TablesError } from '../../../services/tables/port.ts'
import { startTestApp, type TestApp } from '../../support/query/app.ts'
import { fakeTables, snapshotRow } from '../../support/query/fake-tables.ts'
import { expectContract } from '../../support/query/raw-http-contract.ts'
import { expectEveryPromise, readResponse } from '../../support/query/shape.ts'

let outage: Error | undefined
let app: TestApp
let valid: Credentials
let log: string[]
let statements: string[]
const failing = <T>(rows: T[]) => {
  if (outage) throw outage
  return rows
}

beforeEach(async () => {
  outage = undefined
  log = []
  statements = []
  const whole = fakeTables()
  const { tables } = fakeTables({
    snapshot: () => failing([snapshotRow]),
  })
  app = await startTestApp({
    log,
    options: { PLEDGEVIEW_QUERY_MS_MAX: 1_500 },
    tables: {
      rows: async (statement, call) => {
        statements.push(statement.query)
        if (outage) throw outage
        return (statement.query.includes('groupArray(campaign_id)') ? tables : whole.tables).rows(
          statement,
          call,
        )
      },
    },
  })
  valid = app.issue()
})
afterEach(() => app.close())

const ask = async (path: string) => {
  const response = await readResponse(await app.get(path, valid))
  expectEveryPromise(response)
  return response
}
const paths = ['/projects', '/projects/a-slug', '/stats']

it.each(paths)('each statement of %s bounds its own time, in whole seconds rounded up', async path => {
  await ask(path)
  expect(statements.length).toBeGreaterThan(0)
  for (const text of statements) expect(text).toMatch(/SETTINGS .*max_execution_time = 2$/)
})

describe('while ClickHouse is unavailable', () => {
  it('cached responses are served until they expire', async () => {
    const before = await Promise.all(paths.map(ask))
    outage = new TablesError('Code: 210. DB::NetException: connect to 10.1.2.3:8123', { retryable: true })
    app.clock.advance(59_000)
    const during = await Promise.all(paths.map(ask))
    expect(during.map(({ body }) => body)).toEqual(before.map(({ body }) => body))
    app.clock.advance(1000)
    expect((await Promise.all(paths.map(ask))).map(({ status }) => status)).toEqual([500, 500, 200])
    app.clock.advance(240_000)
    expect((await ask('/stats')).status).toBe(500)
    outage = undefined
    expect((await Promise.all(paths.map(ask))).map(({ status }) => status)).toEqual([200, 200, 200])
  })

  it.each(paths)('%s gives internal_error without the cause, and the log has the cause', async path => {
    outage = new TablesError('Code: 210. DB::NetException: connect to 10.1.2.3:8123', { retryable: true })
    const response = await ask(path)
    expectContract(response, '500 internal_error')
    const logged = log.find(line => line.includes('request failed')) ?? ''
    expect(logged).toContain('DB::NetException')
    expect(JSON.parse(logged).requestId).toBe(response.headers['x-request-id'])
  })
})

it('while ClickHouse is slow, a bounded number of statements runs, a bounded number waits, and the others are refused at once', async () => {
  await app.close()
  let running = 0
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const { tables } = fakeTables()
  app = await startTestApp({
    // One key may fill the bounds of ClickHouse here.
    options: { statementsMax: 2, waitingStatementsMax: 3, uncachedPerKeyMax: 8 },
    tables: {
      rows: async (statement, call) => {
        running++
        await held
        return tables.rows(statement, call)
      },
    },
  })
  valid = app.issue()
  const statuses: number[] = []
  const asked = Array.from({ length: 8 }, async (_, n) => {
    const { status } = await ask(`/projects?updated_since=2026-01-0${n + 1}`)
    statuses.push(status)
  })
  await expect.poll(() => statuses).toEqual([500, 500, 500])
  expect(running).toBe(2)
  release()
  await Promise.all(asked)
  expect(statuses).toEqual([500, 500, 500, 200, 200, 200, 200, 200])
})

describe('while a connection to ClickHouse is silent', () => {
  /** Answers when its caller stops waiting. */
  const silence: Tables['rows'] = (_, { signal } = {}) =>
    new Promise((_, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason))
    })
  const away = () => Promise.reject(new TablesError('away', { retryable: true }))

  it('a process is on another generation within seconds, and closes at once', async () => {
    const databases = followedDatabases(defaultNames)
    await databases.follow({ rows: async () => [{ generation: 1 }] as never[] })
    const config = readConfig({})
    let silentLooks = 1
    const hung: string[] = []
    const service = await startQueryService({
      tables: {
        ...{ run: away, insert: away, close: async () => {} },
        rows(statement, options) {
          const isLook = statement.query.includes('generation_log')
          if (!isLook && silentLooks <= 1) return away()
          if (isLook && --silentLooks < 0) return Promise.resolve([{ generation: 2 }] as never[])
          hung.push(statement.query)
          return silence(statement, options)
        },
      },
      ...{ databases, config, keyPepper: 'pepper', state: memoryState(config) },
      ...{ metrics: createMetrics(), logger: pino({ level: 'silent' }) },
    })
    await service.app.ready()
    await expect.poll(() => databases.generation, { timeout: 12_000 }).toBe(2)
    // From now on all statements hang.
    silentLooks = Number.POSITIVE_INFINITY
    hung.length = 0
    for (const part of ['generation_log', 'AS purges', 'revoked_keys'])
      await expect.poll(() => hung.some(query => query.includes(part))).toBe(true)
    const closingAt = performance.now()
    await service.close()
    expect(performance.now() - closingAt).toBeLessThan(3_000)
  })
})
