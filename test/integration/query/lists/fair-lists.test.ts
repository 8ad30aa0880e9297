/** What one key with many distinct lists takes from others: neither their turn, nor their snapshots, nor work for nothing. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Credentials } from '../../../../services/api-keys/credentials.ts'
import type { Statement } from '../../../../services/tables/port.ts'
import { keyHeaders, startTestApp, type TestApp } from '../../../support/query/app.ts'
import { detailRow, fakeTables } from '../../../support/query/fake-tables.ts'

const campaigns = 200
const ids = Array.from({ length: campaigns }, (_, n) => `campaign-${n}`)

let app: TestApp
let greedy: Credentials
let other: Credentials
/** The lists that ClickHouse was asked for, by the year of their `updated_since`. */
let selected: number[]
let gate: PromiseWithResolvers<void>

beforeEach(async () => {
  selected = []
  gate = Promise.withResolvers()
  const { tables } = fakeTables({
    snapshot: ({ query_params }: Statement) => {
      selected.push(new Date(query_params?.updated_since as number).getUTCFullYear())
      const as_of = `2026-03-01 11:59:${String(selected.length % 60).padStart(2, '0')}.000`
      return [{ ids: ids.join('/'), total: campaigns, as_of }]
    },
    projects: ({ query_params }: Statement) => {
      const wanted = query_params?.ids as string[]
      return wanted.map(id => ({ ...detailRow, campaign_id: id }))
    },
  })
  app = await startTestApp({
    tables: {
      async rows<Row>(statement: Statement) {
        const rows = await tables.rows<Row>(statement)
        if (statement.query.includes('groupArray(campaign_id)')) await gate.promise
        return rows
      },
    },
    // Ten snapshots of these campaigns.
    options: { PLEDGEVIEW_CACHE_BYTES_MAX: 10 * 2 * ids.join('/').length },
  })
  greedy = app.issue()
  other = app.issue()
})
afterEach(async () => {
  gate.resolve()
  await app.close()
})

const list = (year: number, offset = 0) => `/projects?limit=10&offset=${offset}&updated_since=${year}-01-01`
const greedyYears = Array.from({ length: 60 }, (_, n) => 1901 + n)
const otherYear = 2001

describe('a key with many distinct lists', () => {
  it('does not keep the list of another key from starting', async () => {
    const answers = greedyYears.map(year => app.get(list(year), greedy))
    await expect.poll(() => selected.length).toBeGreaterThan(1)
    const answer = app.get(list(otherYear), other)
    await expect.poll(() => selected).toContain(otherYear)
    // Of the greedy key only a few have started, though none has ended.
    expect(selected.length).toBeLessThanOrEqual(3)
    gate.resolve()
    expect((await answer).status).toBe(200)
    for (const each of answers) expect((await each).status).toBe(200)
  })

  it('does not push out the snapshot of another key', async () => {
    gate.resolve()
    const first = await app.get(list(otherYear), other)
    for (const year of greedyYears) expect((await app.get(list(year), greedy)).status).toBe(200)
    const second = await app.get(list(otherYear, 10), other)
    expect(second.headers.get('x-data-as-of')).toBe(first.headers.get('x-data-as-of'))
    expect(second.headers.get('x-snapshot-id')).toBe(first.headers.get('x-snapshot-id'))
    expect(selected.filter(year => year === otherYear)).toHaveLength(1)
  })

  it('causes no work for requests that its client has given up', async () => {
    const leaving = new AbortController()
    const answers = greedyYears.map(year =>
      fetch(`http://127.0.0.1:${app.port}/api/v1${list(year)}`, {
        headers: keyHeaders(greedy),
        signal: leaving.signal,
      }).catch(() => undefined),
    )
    await expect.poll(() => selected.length).toBeGreaterThan(1)
    await expect.poll(() => app.connections()).toBe(greedyYears.length)
    leaving.abort()
    await Promise.all(answers)
    await expect.poll(() => app.connections()).toBe(0)
    gate.resolve()
    expect((await app.get(list(otherYear), greedy)).status).toBe(200)
    expect(selected.length).toBeLessThanOrEqual(3)
  })
})
