/** GET /projects: every field, parameter and header, over rows in the read tables of a real ClickHouse. */
import { describe, expect, it } from 'vitest'
import { projectExample } from '../../../../contracts/api/examples.ts'
import { fullCampaign } from '../../../support/query/campaigns.ts'
import { useQueryService } from '../../../support/query/service.ts'
import { campaignRow } from '../../../support/query/tables.ts'

const { store, app, ask, idsOf } = useQueryService()
const category = "Film & 'Video' +1, 100%; <a>"

describe('GET /projects', () => {
  it('shows every field of a campaign and the watermark of the fold, and no other', async () => {
    await store().putCampaigns([campaignRow('c1', fullCampaign)])
    await store().advanceWatermark({ time: "'2026-03-01 12:00:00.123'" })
    const { json, headers } = await ask('/projects')
    const { data, pagination } = json
    expect(headers['x-data-as-of']).toBe('2026-03-01T12:00:00.123Z')
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

  // A client that only follows the links reads exactly the requested list, with any filter.
  it.each([
    ['no filter', '', 12],
    ['a status', '&status=LIVE', 6],
    ['a category of every kind of character', `&category=${encodeURIComponent(category)}`, 4],
    ['a moment with a zone', '&updated_since=2026-01-02T05:00:00.000%2B02:00', 7],
    ['everything', `&status=LIVE&sort=most_backed&updated_since=2026-01-02&category=Games`, 4],
  ])('leads by its links through all of a list with %s, and ends', async (_, filter, total) => {
    await store().putCampaigns(
      Array.from({ length: 12 }, (_, n) =>
        campaignRow(`c${n}`, {
          status: n % 2 === 0 ? 'LIVE' : 'FUNDED',
          category: n % 3 === 0 ? category : 'Games',
          backer_count: n,
          updated_at: `2026-01-02 ${String(n - 2 < 0 ? n : n - 2).padStart(2, '0')}:00:00.000`,
        }),
      ),
    )
    const whole = await ask(`/projects?limit=100${filter}`)
    expect(whole.json.pagination.total).toBe(total)
    expect(whole.headers.link).toBeUndefined()
    const walked: string[] = []
    let path: string | undefined = `/projects?limit=2${filter}`
    for (let pages = 0; path !== undefined; pages++) {
      expect(pages).toBeLessThan(total)
      const { json, headers } = await ask(path)
      walked.push(...json.data.map(({ id }) => id))
      expect(headers.link !== undefined).toBe(json.pagination.has_more)
      path = /^<\/api\/v1(\/projects\?[^>]*)>; rel="next"$/.exec(headers.link ?? '')?.[1]
    }
    expect(walked).toEqual(whole.json.data.map(({ id }) => id))
  })

  it('accepts ids with any characters', async () => {
    const ids = ["a'b", 'a\\b', 'a\nb', 'a\tb', 'é', '日本', '"', '`', ' ', '%']
    await store().putCampaigns(ids.map(id => campaignRow(id)))
    expect(new Set(await idsOf())).toEqual(new Set(ids))
  })
})
