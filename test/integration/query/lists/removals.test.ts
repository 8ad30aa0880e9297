/** GET /removals, over rows in the read tables of a real ClickHouse. */
import { describe, expect, it } from 'vitest'
import { startTestApp } from '../../../support/query/app.ts'
import { useQueryService } from '../../../support/query/service.ts'
import { campaignRow } from '../../../support/query/tables.ts'

const { store, app, ask } = useQueryService()

const day = 86_400_000
/** So many days before the clock of the test. */
const ago = (days: number) => new Date(app().clock.now() - days * day).toISOString()
const inTables = (iso: string) => iso.replace('T', ' ').replace('Z', '')
const gone = (id: string, days: number, wasPublic = 1) =>
  campaignRow(id, { is_deleted: 1, updated_at: inTables(ago(days)), ...{ was_public: wasPublic } })

/** Four that left, one that came back, one that was never public, and what says from when on all are known. */
async function someLeave(): Promise<void> {
  await store().putCampaigns([gone('back', 9), gone('a', 8)])
  await store().putCampaigns([gone('never', 3, 0)])
  await store().putCampaigns([
    ...[campaignRow('shown'), campaignRow('back', { updated_at: inTables(ago(7)) })],
    ...[gone('a', 5), gone('b', 5), gone("c' OR 1 = 1 -- ", 4), gone('old', 30)],
    gone('', 40),
  ])
  await store().advanceWatermark()
}

const idsIn = ({ json }: { json: { data: { id: string }[] } }) => json.data.map(({ id }) => id)

describe('GET /removals', () => {
  it('has the ids of campaigns that left, and nothing else of them', async () => {
    await someLeave()
    const { json, headers } = await ask(`/removals?since=${ago(10)}`)
    expect(json).toEqual({
      data: [
        { id: 'a', updated_at: ago(5) },
        { id: 'b', updated_at: ago(5) },
        { id: "c' OR 1 = 1 -- ", updated_at: ago(4) },
      ],
      pagination: { total: 3, limit: 50, offset: 0, has_more: false },
      kept_since: ago(40),
    })
    expect(headers['x-data-as-of']).toBe((await ask('/projects')).headers['x-data-as-of'])
    expect(headers['x-snapshot-id']).toBeDefined()
    expect(headers['cache-control']).toBe('private, max-age=60')
  })

  it('has what left at `since` or later, and everything that is kept without it', async () => {
    await someLeave()
    expect(idsIn(await ask(`/removals?since=${ago(4)}`))).toEqual(["c' OR 1 = 1 -- "])
    expect(idsIn(await ask(`/removals?since=${ago(3)}`))).toEqual([])
    expect(idsIn(await ask('/removals'))).toEqual(['old', 'a', 'b', "c' OR 1 = 1 -- "])
    expect(idsIn(await ask('/removals?since=1900-01-01'))).toHaveLength(4)
  })

  it('has pages from one snapshot, and links to the next', async () => {
    await someLeave()
    const first = await ask('/removals?limit=3')
    expect(first.headers.link).toContain('</api/v1/removals?limit=3&offset=3>; rel="next"')
    await store().putCampaigns([gone('late', 1)])
    const next = await ask('/removals?limit=3&offset=3')
    expect(idsIn(next)).toEqual(["c' OR 1 = 1 -- "])
    expect(next.headers['x-snapshot-id']).toBe(first.headers['x-snapshot-id'])
    expect(next.json.pagination).toEqual({ total: 4, limit: 3, offset: 3, has_more: false })
    app().clock.advance(60_001)
    expect(idsIn(await ask('/removals?limit=100'))).toContain('late')
  })

  it.each([
    ["since=2026-01-01' OR '1' = '1", 'since must be an ISO 8601 timestamp'],
    ['since=yesterday', 'since must be an ISO 8601 timestamp'],
    ['since=', 'since must be an ISO 8601 timestamp'],
    ['since=2026-01-01&since=2026-01-02', 'since must be given only once'],
    ['limit=101', 'limit must be a whole number'],
  ])('refuses %s', async (query, message) => {
    const { json } = await ask(`/removals?${encodeURI(query)}`, 400)
    expect(json.error).toMatchObject({ code: 'invalid_parameter', message: expect.stringContaining(message) })
  })

  it('ignores the parameters of other lists, and lists ignore its own', async () => {
    await someLeave()
    expect(idsIn(await ask('/removals?updated_since=x&status=y'))).toHaveLength(4)
    await ask('/projects?since=x')
  })

  it('keeps what left for as long as the operator wants, and 0 days switch it off', async () => {
    await someLeave()
    const { tables, databases } = store()
    for (const [days, status] of [
      [6, 200],
      [0, 404],
    ] as const) {
      const other = await startTestApp({ tables, databases, options: { PLEDGEVIEW_REMOVALS_DAYS: days } })
      const response = await other.get('/removals', other.issue())
      await other.close()
      expect(response.status).toBe(status)
      if (status === 404) continue
      const { data, kept_since } = (await response.json()) as { data: object[]; kept_since: string }
      const asOf = Date.parse(response.headers.get('x-data-as-of') ?? '')
      expect([data.length, asOf - Date.parse(kept_since)]).toEqual([3, 6 * day])
    }
  })
})
