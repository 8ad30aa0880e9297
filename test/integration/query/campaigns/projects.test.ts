/** GET /projects: every field, parameter and header, over rows in the read tables of a real ClickHouse. */
import { describe, expect, it } from 'vitest'
import { projectExample } from '../../../../contracts/api/examples.ts'
import { fullCampaign } from '../../../support/query-campaigns.ts'
import { useQueryService } from '../../../support/query-service.ts'
import { campaignRow } from '../../../support/query-tables.ts'

const { store, app, ask, list, idsOf } = useQueryService()

describe('GET /projects', () => {
  it('shows every field of a campaign, and no other', async () => {
    await store().putCampaigns([campaignRow('c1', fullCampaign)])
    const { data, pagination } = await list()
    const days = Math.ceil((Date.parse('2299-12-31T23:59:59.999Z') - app().clock.now()) / 86_400_000)
    expect(Object.keys(data[0] ?? {})).toEqual(Object.keys(projectExample))
    expect(data).toMatchObject([
      {
        id: 'c1',
        slug: 'slug-c1',
        url: 'https://crowdfunding.example/projects/c1',
        title: 'Title of c1',
        subtitle: 'A subtitle with "quotes", \\ and \u2028',
        category: 'Film & Video',
        subcategory: 'Shorts',
        location: 'São Paulo, Brasil 🎬',
        image_url: 'https://crowdfunding.example/c1.jpg',
        currency: 'KWD',
        goal_amount: 1234567.125,
        pledged_amount: 0.001,
        percent_funded: 0.01,
        backer_count: 1,
        follower_count: 9_007_199_254_740_991,
        status: 'FUNDED',
        campaign_type: 'KEEP_WHAT_YOU_GET',
        project_type: 'STANDARD',
        is_staff_pick: true,
        has_adult_content: true,
        uses_ai: true,
        tags: ['short', 'film'],
        launch_date: '1999-12-31T23:59:59.999Z',
        end_date: '2299-12-31T23:59:59.999Z',
        days_remaining: days,
        created_at: '1900-01-01T00:00:00.000Z',
        updated_at: '2026-01-02T03:04:05.678Z',
        creator: {
          name: 'A Creator',
          profile_url: 'https://crowdfunding.example/creators/a',
          avatar_url: 'https://crowdfunding.example/a.jpg',
        },
      },
    ])
    expect(pagination).toEqual({ total: 1, limit: 50, offset: 0, has_more: false })
  })

  it('is an empty list for an empty platform', async () => {
    expect(await list()).toEqual({
      data: [],
      pagination: { total: 0, limit: 50, offset: 0, has_more: false },
    })
  })

  it('pages through all campaigns without gap or repetition, and marks the last page', async () => {
    const ids = Array.from({ length: 25 }, (_, n) => `c${String(n).padStart(2, '0')}`)
    await store().putCampaigns(ids.map(id => campaignRow(id)))
    const walked: string[] = []
    for (let offset = 0; offset < 25; offset += 10) {
      const { headers, json } = await ask(`/projects?limit=10&offset=${offset}`)
      walked.push(...json.data.map(({ id }) => id))
      const hasMore = offset + 10 < 25
      expect(json.pagination).toEqual({ total: 25, limit: 10, offset, has_more: hasMore })
      expect(headers.link).toBe(
        hasMore ? `</api/v1/projects?limit=10&offset=${offset + 10}>; rel="next"` : undefined,
      )
    }
    expect(walked).toEqual(ids)
    expect((await list('?offset=25')).data).toEqual([])
    expect((await list('?offset=9007199254740991')).pagination).toMatchObject({ total: 25, has_more: false })
  })

  it('filters by status and by exact category, together and separately', async () => {
    await store().putCampaigns([
      campaignRow('a', { status: 'LIVE', category: 'Games' }),
      campaignRow('b', { status: 'FUNDED', category: 'Games' }),
      campaignRow('c', { status: 'FAILED', category: "It's \\ Film & 'Video'\n?" }),
      campaignRow('d', { status: 'CANCELLED', category: 'games' }),
    ])
    expect(await idsOf('?status=FUNDED')).toEqual(['b'])
    expect(await idsOf('?category=Games')).toEqual(['a', 'b'])
    expect(await idsOf('?category=games&status=CANCELLED')).toEqual(['d'])
    expect(await idsOf('?category=Game')).toEqual([])
    expect(await idsOf(`?category=${encodeURIComponent("It's \\ Film & 'Video'\n?")}`)).toEqual(['c'])
    expect((await list('?status=LIVE')).pagination.total).toBe(1)
  })

  it('sorts by launch date, latest first, without a date last, ties by id', async () => {
    await store().putCampaigns([
      campaignRow('d', { launch_date: null }),
      campaignRow('c', { launch_date: '2026-01-01 00:00:00.000' }),
      campaignRow('b', { launch_date: '2026-01-01 00:00:00.000' }),
      campaignRow('e', { launch_date: '2026-01-01 00:00:00.001' }),
      campaignRow('a', { launch_date: '1950-01-01 00:00:00.000' }),
    ])
    expect(await idsOf('?sort=newest')).toEqual(['e', 'b', 'c', 'a', 'd'])
    expect(await idsOf()).toEqual(['e', 'b', 'c', 'a', 'd'])
  })

  it('sorts by end: running campaigns soonest first, then ended ones latest first, then those without an end', async () => {
    await store().putCampaigns([
      campaignRow('a', { end_date: '2299-01-01 00:00:00.000' }),
      campaignRow('b', { end_date: '2290-01-01 00:00:00.000' }),
      campaignRow('c', { end_date: '2020-01-01 00:00:00.000' }),
      campaignRow('d', { end_date: '2025-01-01 00:00:00.000' }),
      campaignRow('f', { end_date: '2290-01-01 00:00:00.000' }),
      campaignRow('e', { end_date: null }),
      campaignRow('g', { end_date: '1900-01-01 00:00:00.000' }),
    ])
    expect(await idsOf('?sort=ending_soon')).toEqual(['b', 'f', 'a', 'd', 'c', 'g', 'e'])
  })

  it('does not count a cancelled campaign as running, whatever its end date is', async () => {
    await store().putCampaigns([
      campaignRow('cancelled', { status: 'CANCELLED', end_date: '2290-01-01 00:00:00.000' }),
      campaignRow('running', { status: 'LIVE', end_date: '2299-01-01 00:00:00.000' }),
      campaignRow('ended', { status: 'FUNDED', end_date: '2020-01-01 00:00:00.000' }),
    ])
    expect(await idsOf('?sort=ending_soon')).toEqual(['running', 'cancelled', 'ended'])
  })

  it('shows a count above 2^53-1 instead of failing the page', async () => {
    await store().putCampaigns([campaignRow('popular', { follower_count: 2 ** 53 }), campaignRow('plain')])
    expect(await idsOf('?sort=newest')).toEqual(expect.arrayContaining(['popular', 'plain']))
  })

  it('sorts by amount in the platform currency, not in the own currency, and by backers', async () => {
    await store().putCampaigns([
      campaignRow('a', { pledged_amount: '900000', pledged_platform_amount: '10.01', backer_count: 5 }),
      campaignRow('b', { pledged_amount: '1', pledged_platform_amount: '9000.5', backer_count: 7 }),
      campaignRow('c', { pledged_amount: '2', pledged_platform_amount: '10.01', backer_count: 5 }),
      campaignRow('d', { pledged_amount: '3', pledged_platform_amount: '10.0101', backer_count: 100 }),
    ])
    expect(await idsOf('?sort=most_funded')).toEqual(['b', 'd', 'a', 'c'])
    expect(await idsOf('?sort=most_backed')).toEqual(['d', 'b', 'a', 'c'])
  })

  it('lists what changed at or after updated_since, to the millisecond', async () => {
    await store().putCampaigns([
      campaignRow('a', { updated_at: '2026-01-02 03:04:05.677' }),
      campaignRow('b', { updated_at: '2026-01-02 03:04:05.678' }),
      campaignRow('c', { updated_at: '2026-01-02 03:04:05.679' }),
    ])
    expect(await idsOf('?updated_since=2026-01-02T03:04:05.678Z')).toEqual(['b', 'c'])
    expect(await idsOf('?updated_since=2026-01-02T05:04:05.679+02:00')).toEqual(['c'])
    expect(await idsOf('?updated_since=2026-01-03')).toEqual([])
    expect(await idsOf('?updated_since=1900-01-01T00:00:00.000Z')).toEqual(['a', 'b', 'c'])
    expect(await idsOf('?updated_since=2299-12-31T23:59:59.999Z')).toEqual([])
  })

  it('has the watermark that the fold has written', async () => {
    const { tables, databases } = store()
    const reached = '2026-03-01 12:00:00.123'
    await tables.run({
      query: `INSERT INTO ${databases.read}.watermarks (shard, reached) SELECT '', '${reached}'`,
    })
    const { headers } = await ask('/projects')
    expect(headers['x-data-as-of']).toBe('2026-03-01T12:00:00.123Z')
  })

  it.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['offset=-1', 'offset'],
    ['status=DRAFT', 'status'],
    ['sort=oldest', 'sort'],
    ['updated_since=yesterday', 'updated_since'],
    ['sort=newest&sort=newest', 'sort'],
  ])('refuses %s and names the parameter', async (query, name) => {
    const { json } = await ask(`/projects?${query}`, 400)
    expect(json.error.code).toBe('invalid_parameter')
    expect(json.error.message).toMatch(new RegExp(`^${name} `))
  })

  it('shows a campaign once, in its latest state, and not at all if it is no longer public', async () => {
    await store().putCampaigns([campaignRow('a', { title: 'old' }), campaignRow('b'), campaignRow('c')])
    await store().putCampaigns([campaignRow('a', { title: 'new' }), campaignRow('b', { is_deleted: 1 })])
    const { data, pagination } = await list()
    expect(data.map(({ id, title }) => [id, title])).toEqual([
      ['a', 'new'],
      ['c', 'Title of c'],
    ])
    expect(pagination.total).toBe(2)
  })

  it('accepts ids with any characters', async () => {
    const ids = ["a'b", 'a\\b', 'a\nb', 'a\tb', 'é', '日本', '"', '`', ' ', '%']
    await store().putCampaigns(ids.map(id => campaignRow(id)))
    expect(new Set(await idsOf())).toEqual(new Set(ids))
  })
})
