/** What the page for data teams reads, from real tables, and that opening it is no way to load them. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDataPicturesReader } from '../../../../services/portal/guide/data-pictures.ts'
import type { Tables } from '../../../../services/tables/port.ts'
import { startTestPortal } from '../../../support/portal/app.ts'
import { testClock } from '../../../support/query-app.ts'
import { campaignRow, openQueryTables, type QueryTables } from '../../../support/query-tables.ts'

let store: QueryTables
beforeAll(async () => {
  store = await openQueryTables()
  await store.putCampaigns([
    campaignRow('a', { category: 'Art', status: 'FUNDED', pledged_platform_amount: '10.5', title: '<b>A' }),
    campaignRow('b', { category: 'Art', status: 'FAILED', pledged_platform_amount: '99' }),
    campaignRow('c', { category: 'Games', status: 'LIVE', pledged_platform_amount: '50' }),
  ])
})
afterAll(() => store?.close())

function reader(tables: Pick<Tables, 'rows'> = store.tables) {
  const clock = testClock()
  const warnings: string[] = []
  const pictures = createDataPicturesReader({
    tables,
    databases: store.databases,
    now: clock.now,
    warn: message => warnings.push(message),
  })
  /** What is read, once it is there: a busy machine may take longer than a page waits. */
  async function whole() {
    for (;;) {
      const read = await pictures.read()
      if (read.about) return read
    }
  }

  return { clock, pictures, whole, warnings }
}

test('it reads what the pictures show from the views', async () => {
  const { whole, warnings } = reader()
  const { about, funding, categories, campaigns } = await whole()
  expect(warnings).toEqual([])
  expect(about).toMatchObject({ campaigns: 3 })
  expect(categories).toEqual([{ category: 'Art', ended: 2, funded: 1 }])
  expect(campaigns?.map(({ raised }) => raised)).toEqual([99, 50, 10.5])
  expect(funding?.points).toEqual(expect.any(Array))
})

test('the page shows them, under the policy of every page', async () => {
  const { pictures, whole } = reader()
  await whole()
  const portal = await startTestPortal({ overrides: { pictures } })
  const { status, headers, text } = await portal.browser().get('/data')
  await portal.close()
  expect(status).toBe(200)
  expect(headers.get('content-security-policy')).toContain("style-src 'self'")
  expect(text).toContain('&#60;b&#62;A')
  expect(text).toContain('<a href="/data" aria-current="page">')
})

test('however many people open the page, the tables are read once a minute, one statement at a time', async () => {
  let statements = 0
  let atOnce = 0
  let atOnceMost = 0
  const { pictures, whole, clock } = reader({
    async rows(...args) {
      statements++
      atOnceMost = Math.max(atOnceMost, ++atOnce)
      try {
        return await store.tables.rows(...args)
      } finally {
        atOnce--
      }
    },
  })
  await Promise.all(Array.from({ length: 50 }, () => pictures.read()))
  const first = await whole()
  const once = statements
  clock.advance(59_999)
  expect(await pictures.read()).toBe(first)
  expect(statements).toBe(once)
  // After the minute a reader still gets the last reading at once, and a new one begins.
  clock.advance(1)
  expect(await pictures.read()).toBe(first)
  await expect.poll(() => pictures.read()).not.toBe(first)
  expect(statements).toBe(2 * once)
  expect(atOnceMost).toBe(1)
})

test('while there is no campaign yet, the tables are read again after two seconds', async () => {
  let isEmpty = true
  const { pictures, whole, clock } = reader({
    async rows<T>(...args: Parameters<Tables['rows']>) {
      const rows = await store.tables.rows<T>(...args)
      return isEmpty ? rows.map(row => ({ ...row, campaigns: 0 })) : rows
    },
  })
  expect((await whole()).about?.campaigns).toBe(0)
  isEmpty = false
  clock.advance(1_999)
  expect((await pictures.read()).about?.campaigns).toBe(0)
  clock.advance(1)
  expect((await whole()).about?.campaigns).toBe(3)
})

test('what cannot be read is missing, the rest is there, and it is tried again only after the minute', async () => {
  let statements = 0
  const { pictures, whole, clock, warnings } = reader({
    async rows(statement, options) {
      statements++
      if (statement.query.includes('LIMIT 10')) throw new Error('too slow')
      return store.tables.rows(statement, options)
    },
  })
  const first = await whole()
  expect(first.campaigns).toBeUndefined()
  expect(first.categories).toHaveLength(1)
  expect(warnings).toEqual([expect.stringContaining('the top campaigns cannot be read')])
  const once = statements
  clock.advance(59_999)
  await pictures.read()
  expect(statements).toBe(once)
})

test('the page waits for tables that do not answer only for seconds, and never shows an old reading for long', async () => {
  let isSilent = false
  const { pictures, whole, clock } = reader({
    rows: (...args) => (isSilent ? new Promise(() => {}) : store.tables.rows(...args)),
  })
  await whole()
  isSilent = true
  clock.advance(899_999)
  expect((await pictures.read()).about).toBeDefined()
  clock.advance(1)
  expect((await pictures.read()).about).toBeUndefined()
})
