/** A detail that is read by the id from the list index is the one that the search by slug finds. What it shows: exports.test.ts. */
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { ProjectDetail } from '../../../../contracts/api/schemas.ts'
import { type Asked, NotFoundError } from '../../../../services/query/endpoints/endpoint.ts'
import { project } from '../../../../services/query/endpoints/project.ts'
import { createListFollower, type ListFollower } from '../../../../services/query/lists/list-follower.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import type { Statement, Tables } from '../../../../services/tables/port.ts'
import { campaignRow, openQueryTables, type QueryTables } from '../../../support/query/tables.ts'

// The last two have the same code.
const slugs = ['lamp', 'boat', 'plumless', 'buckeroo']
let store: QueryTables
let statements: string[]
let clock: number
let follower: ListFollower

beforeAll(async () => {
  store = await openQueryTables()
})
afterAll(() => store.close())
beforeEach(async () => {
  await store.clear()
  clock = 0
  statements = []
  follower = createListFollower(
    counted(),
    store.databases,
    { statementMsMax: 10_000, campaignsMax: 1_000, freshMs: 0, reloadMs: 0, countMs: 0 },
    error => {
      throw error
    },
    { monotonicMs: () => clock },
  )
})

function counted(): Pick<Tables, 'rows'> {
  return {
    rows: <Row>(statement: Statement) => {
      statements.push(statement.query)
      return store.tables.rows<Row>(statement)
    },
  }
}

/** The id that a detail shows, or null. */
async function shown(slug: string, known: Pick<ListFollower, 'idOfSlug'> = follower): Promise<string | null> {
  const unused = () => Promise.reject(new Error('a detail reads no list'))
  const parts = {
    tables: counted(),
    databases: store.databases,
    lists: { page: unused, removals: unused },
    rows: { read: unused },
    slugs: known,
    options: readConfig({}),
  }
  try {
    const { body } = await (project.read('', { slug }) as Asked).load(parts, '', 0)
    const { data } = project.schema.parse(body) as { data: ProjectDetail }
    expect(data.slug).toBe(slug)
    return data.id
  } catch (error) {
    if (error instanceof NotFoundError) return null
    throw error
  }
}

const searched = (slug: string) => shown(slug, { idOfSlug: () => undefined })
const searches = () => statements.filter(query => query.includes('campaign_by_slug')).length

async function put(...rows: ReturnType<typeof campaignRow>[]): Promise<void> {
  const updated_at = new Date().toISOString().replace('T', ' ').replace('Z', '')
  await store.putCampaigns(rows.map(row => ({ ...row, updated_at })))
}

test('is read by id, without a search, as long as the index is not too old', async () => {
  await put(campaignRow('c1', { slug: 'lamp' }))
  await expect.poll(() => follower.current()).toBeDefined()
  expect(await shown('lamp')).toBe('c1')
  expect(searches()).toBe(0)
  clock = 10_000
  expect(await shown('lamp')).toBe('c1')
  expect(searches()).toBe(1)
})

test('is the same while campaigns come, go, change their slugs and share them', async () => {
  await put(campaignRow('c0', { slug: 'lamp' }))
  await expect.poll(() => follower.current()).toBeDefined()
  const change = fc.record({
    id: fc.constantFrom('c1', 'c2', 'c3'),
    slug: fc.constantFrom(...slugs),
    is_deleted: fc.constantFrom<0 | 1>(0, 0, 1),
    isSeen: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 5 }), async changes => {
      for (const { id, slug, is_deleted, isSeen } of changes) {
        await put(campaignRow(id, { slug: is_deleted ? '' : slug, is_deleted }))
        if (isSeen) await follower.current()
        for (const wanted of slugs) {
          const found = await shown(wanted)
          const first = await searched(wanted)
          // An index that has not seen the change may show another campaign that has the slug now (`shown` compares it).
          if (isSeen) expect(found).toBe(first)
          else expect(found === null).toBe(first === null)
        }
      }
    }),
    { numRuns: 12 },
  )
})

test('finds by a shared slug the campaign with the smallest id that has it now', async () => {
  const [slug = ''] = slugs
  for (const [id, change] of [
    ['a', ['b', 'a', 'c'].map(id => campaignRow(id, { slug }))],
    ['b', [campaignRow('a', { slug: 'left' })]],
    ['c', [campaignRow('b', { is_deleted: 1, slug: '' })]],
    ['0', [campaignRow('0', { slug })]],
  ] as const) {
    await put(...change)
    expect(await searched(slug)).toBe(id)
  }
})
