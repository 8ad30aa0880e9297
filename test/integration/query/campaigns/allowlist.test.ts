/**
 * No response of any status contains a field outside the allowlist or a text of a failure, whatever the tables hold.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Credentials } from '../../../../services/api-keys/credentials.ts'
import { startTestApp, type TestApp, testClock } from '../../../support/query/app.ts'
import {
  detailRow,
  type FakeAnswers,
  fakeTables,
  snapshotRow,
  statsRow,
} from '../../../support/query/fake-tables.ts'
import { expectEveryPromise, readResponse } from '../../../support/query/shape.ts'

const marker = 'SECRET-7f3a'
const secretFields = {
  backer_id: marker,
  backer_hash: marker,
  contact_email: `${marker}@example.com`,
  creator_id: marker,
  secret_hash: marker,
  integration: { contact_email: marker },
  pledges: [{ backer: marker }],
  content_hash: marker,
  pledged_platform_amount: marker,
  updated_at: marker,
  fold_id: marker,
  __proto__: { polluted: marker },
  toJSON: marker,
}

const text = fc.string({ unit: 'binary', maxLength: 20 })
const names = fc.constantFrom(...Object.keys(detailRow), 'rewards', 'categories', 'total', 'ids', 'as_of')
const noise = fc.oneof(
  text,
  fc.double(),
  fc.constantFrom(
    null,
    true,
    false,
    Number.NaN,
    -1,
    2 ** 60,
    [],
    {},
    [[]],
    '2026-01-01 00:00:00.000',
    'DRAFT',
  ),
  fc.array(fc.object({ maxDepth: 1 }), { maxLength: 3 }),
)
const reward = fc.record(
  {
    reward_id: text,
    title: text,
    description: text,
    amount: fc.nat(),
    quantity_available: fc.option(fc.nat()),
  },
  { requiredKeys: [] },
)

/** A valid row with extra fields that look like secrets, and sometimes with wrong values. */
function disturbed(row: object): fc.Arbitrary<object> {
  const extra = fc.dictionary(text, fc.constant(marker), { maxKeys: 3 })
  const wrong = fc.dictionary(names, noise, { maxKeys: 2 })
  const rewards = fc.array(
    reward.map(tier => ({ quantity_claimed: 0, quantity_remaining: null, ...tier, ...secretFields })),
  )
  return fc
    .tuple(fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, wrong), extra, fc.option(rewards))
    .map(([wrongs, extras, tiers]) => ({
      ...row,
      ...(tiers && { rewards: tiers }),
      ...extras,
      ...wrongs,
      ...secretFields,
    }))
}

/** The rows of a statement, or its failure with a message that must not reach a client. */
function answerOf(row: object): fc.Arbitrary<() => unknown[]> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.array(disturbed(row), { maxLength: 3 }).map(rows => () => rows) },
    {
      weight: 1,
      arbitrary: fc.constant(() => {
        throw new Error(`DB::Exception: ${marker}: While executing SELECT`)
      }),
    },
  )
}

const answers: fc.Arbitrary<FakeAnswers> = fc.record({
  snapshot: fc.oneof({ weight: 4, arbitrary: fc.constant(() => [snapshotRow]) }, answerOf(snapshotRow)),
  projects: answerOf(detailRow),
  detail: answerOf(detailRow),
  stats: answerOf(statsRow),
})

let current: FakeAnswers
const clock = testClock()
let app: TestApp
let valid: Credentials
const log: string[] = []
const statuses = new Map<number, number>()

beforeAll(async () => {
  const { tables } = fakeTables({
    snapshot: statement => current.snapshot(statement),
    projects: statement => current.projects(statement),
    detail: statement => current.detail(statement),
    stats: statement => current.stats(statement),
  })
  app = await startTestApp({ tables, clock, keyLimit: 40, addressLimit: 40, log })
  valid = app.issue()
})
afterAll(() => app.close())

const paths = [
  '/projects',
  '/projects?limit=1&offset=0',
  '/projects/a-slug',
  '/stats',
  '/projects?limit=x',
  '/nowhere',
]

describe('no response', () => {
  it('has a field outside the allowlist or any text of a failure, whatever the tables hold', async () => {
    await fc.assert(
      fc.asyncProperty(answers, fc.boolean(), async (given, isAuthentic) => {
        current = given
        // Longer than every cache period, but not always longer than the rate window, so some requests are refused too.
        clock.advance(5 * 60_000)
        for (const path of [...paths, ...paths]) {
          const response = await readResponse(await app.get(path, isAuthentic ? valid : undefined))
          expectEveryPromise(response)
          expect(response.body).not.toContain(marker)
          expect(response.body).not.toContain('DB::Exception')
          for (const value of Object.values(response.headers)) expect(value).not.toContain(marker)
          statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
        }
      }),
      { numRuns: 150 },
    )
    // A service that only fails would have this property too.
    for (const status of [200, 400, 401, 404, 500])
      expect(statuses.get(status), `${status}`).toBeGreaterThan(10)
  })
})

it.each(['DRAFT', 'SUBMITTED', 'APPROVED', 'SUSPENDED', 'UNKNOWN', ''])(
  'a campaign whose status is not public gives an error and is not shown, if the tables hold one: %s',
  async status => {
    const rows = () => [{ ...detailRow, status }]
    current = { snapshot: () => [snapshotRow], projects: rows, detail: rows, stats: () => [statsRow] }
    clock.advance(5 * 60_000)
    for (const path of ['/projects', '/projects/a-slug']) {
      const response = await readResponse(await app.get(path, valid))
      expectEveryPromise(response)
      expect(response.status).toBe(500)
    }
  },
)
