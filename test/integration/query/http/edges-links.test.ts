/** `Link: rel="next"`: a client that only follows it reads exactly the requested list, with any filter. */
import { expect, it } from 'vitest'
import { useQueryService } from '../../../support/query-service.ts'
import { campaignRow } from '../../../support/query-tables.ts'

const { store, ask } = useQueryService()
const category = "Film & 'Video' +1, 100%; <a>"

it.each([
  ['no filter', '', 12],
  ['a status', '&status=LIVE', 6],
  ['a category of every kind of character', `&category=${encodeURIComponent(category)}`, 4],
  ['a moment with a zone', '&updated_since=2026-01-02T05:00:00.000%2B02:00', 7],
  ['everything', `&status=LIVE&sort=most_backed&updated_since=2026-01-02&category=Games`, 4],
])('of a list with %s leads through all of it and ends', async (_, filter, total) => {
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
