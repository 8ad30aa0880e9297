/** What stays the same within a cache period and what does not, while rows change in a real ClickHouse. */
import { describe, expect, it } from 'vitest'
import { useQueryService } from '../../../support/query/service.ts'
import { campaignRow } from '../../../support/query/tables.ts'

const { store, app, ask, list } = useQueryService()

describe('caching', () => {
  it('sends the same bytes with a growing age for a minute, and new ones after it', async () => {
    await store().putCampaigns([campaignRow('a')])
    const first = await ask('/projects?limit=10')
    expect(first.headers).toMatchObject({ age: '0', 'cache-control': 'private, max-age=60' })
    app().clock.advance(-1_000)
    expect((await ask('/projects?limit=10')).headers.age).toBe('0')
    app().clock.advance(1_000)
    await store().putCampaigns([campaignRow('b')])
    app().clock.advance(59_500)
    const second = await ask('/projects?limit=10')
    expect(second.body).toBe(first.body)
    expect(second.headers).toMatchObject({
      age: '60',
      'cache-control': 'private, max-age=60',
      etag: first.headers.etag,
      'x-data-as-of': first.headers['x-data-as-of'],
      'x-snapshot-id': first.headers['x-snapshot-id'],
    })
    app().clock.advance(500)
    const third = await ask('/projects?limit=10')
    expect(third.json.pagination.total).toBe(2)
    const other = await ask('/projects?limit=10&status=LIVE')
    const answers = [first, third, other].map(({ headers }) => headers['x-snapshot-id'])
    expect(new Set(answers).size).toBe(3)
  })

  it('sends the present snapshot with a 304 for a body of an earlier one', async () => {
    await store().putCampaigns([campaignRow('a')])
    const { headers } = await ask('/projects')
    app().clock.advance(60_000)
    const confirmed = await ask('/projects', 304, { 'If-None-Match': headers.etag ?? '' })
    expect(confirmed.headers['x-snapshot-id']).toMatch(/^[\w-]{36}$/)
    expect(confirmed.headers['x-snapshot-id']).not.toBe(headers['x-snapshot-id'])
    expect((await ask('/projects?limit=1')).headers['x-snapshot-id']).toBe(confirmed.headers['x-snapshot-id'])
  })

  it('recognises the same query in every spelling', async () => {
    await store().putCampaigns([campaignRow('a')])
    const first = await ask('/projects?limit=50&sort=newest&updated_since=2026-01-01')
    await store().putCampaigns([campaignRow('b')])
    const second = await ask('/projects?page=7&updated_since=2026-01-01T01:00:00.000%2B01:00')
    expect(second.body).toBe(first.body)
  })

  it.each(['/projects', '/projects/slug-a', '/stats'])(
    'answers 304 for %s if the client has the body',
    async path => {
      await store().putCampaigns([campaignRow('a')])
      const { headers } = await ask(path)
      expect(headers.etag).toMatch(/^W\/"[\w-]{22}"$/)
      // Some proxies make a strong tag of it.
      for (const tag of [headers.etag, headers.etag?.replace('W/', '')]) {
        const confirmed = await ask(path, 304, { 'If-None-Match': `"other", ${tag}` })
        expect(confirmed.headers).toMatchObject({ etag: headers.etag, age: '0' })
        expect(confirmed.headers['cache-control']).toBe(headers['cache-control'])
        expect(confirmed.headers['x-data-as-of']).toBe(headers['x-data-as-of'])
        expect(confirmed.headers['x-snapshot-id']).toBe(headers['x-snapshot-id'])
      }
      await ask(path, 200, { 'If-None-Match': 'W/"something else"' })
    },
  )

  it('keeps statistics for five minutes', async () => {
    const first = await ask('/stats')
    await store().putCampaigns([campaignRow('a')])
    app().clock.advance(299_999)
    expect((await ask('/stats')).body).toBe(first.body)
    app().clock.advance(1)
    expect((await ask('/stats')).json.data.projects_total).toBe(1)
  })

  it('does not cache a 404', async () => {
    await ask('/projects/slug-a', 404)
    await store().putCampaigns([campaignRow('a')])
    await ask('/projects/slug-a')
  })
})

describe('a snapshot', () => {
  it('keeps total, order and membership of all pages while rows change, and is renewed after a minute', async () => {
    const ids = Array.from({ length: 9 }, (_, n) => `c${n}`)
    await store().putCampaigns(ids.map((id, n) => campaignRow(id, { backer_count: 100 - n })))
    const page = (offset: number) => ask(`/projects?sort=most_backed&limit=3&offset=${offset}`)
    const first = await page(0)
    await store().putCampaigns([
      campaignRow('c8', { backer_count: 1000 }),
      campaignRow('c4', { is_deleted: 1 }),
      campaignRow('new', { backer_count: 500 }),
      campaignRow('c3', { backer_count: 97, title: 'Renamed' }),
    ])
    const second = await page(3)
    app().clock.advance(59_999)
    const third = await page(6)
    const walked = [first, second, third].map(({ json }) => json.data.map(({ id }) => id))
    expect(walked).toEqual([
      ['c0', 'c1', 'c2'],
      ['c3', 'c5'],
      ['c6', 'c7', 'c8'],
    ])
    for (const { json, headers } of [first, second, third]) {
      expect(json.pagination.total).toBe(9)
      expect(headers['x-data-as-of']).toBe(first.headers['x-data-as-of'])
      expect(headers['x-snapshot-id']).toBe(first.headers['x-snapshot-id'])
    }
    expect(third.headers).toMatchObject({ age: '60', 'cache-control': 'private, max-age=60' })
    app().clock.advance(1)
    const next = await page(0)
    expect(next.json.data.map(({ id }) => id)).toEqual(['c8', 'new', 'c0'])
    expect(next.json.pagination.total).toBe(9)
  })

  it('keeps the order of a list that is larger than a block of ClickHouse, ties included', async () => {
    await store().tables.run({
      query: `INSERT INTO ${store().databases.read}.campaigns
        (campaign_id, slug, status, category, launch_date, created_at, updated_at, fold_id, is_deleted)
        SELECT concat('c', toString(number)), concat('s', toString(number)), 'LIVE', 'Games',
          toDateTime64('2000-01-01 00:00:00', 3, 'UTC') + toIntervalSecond((number * 7919) % 1000),
          now64(3), now64(3), 1, 0
        FROM numbers(150000) SETTINGS async_insert = 0`,
    })
    const expected = Array.from({ length: 150_000 }, (_, n) => ({
      id: `c${n}`,
      launch: (n * 7919) % 1000,
    }))
      .sort((a, b) => b.launch - a.launch || (a.id < b.id ? -1 : 1))
      .map(({ id }) => id)
    for (const offset of [0, 65_530, 131_050, 149_950]) {
      const { data, pagination } = await list(`?limit=100&offset=${offset}`)
      expect(pagination.total).toBe(150_000)
      expect(data.map(({ id }) => id)).toEqual(expected.slice(offset, offset + 100))
    }
  })
})
