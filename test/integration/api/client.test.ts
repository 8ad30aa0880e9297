/** The client with the query app over a real ClickHouse: it confirms what the model of the service assumes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { type Change, createClient } from '../../../contracts/api/client.ts'
import { useQueryService } from '../../support/query/service.ts'
import { campaignRow } from '../../support/query/tables.ts'

const { store, app } = useQueryService()

// The app's clock stands still. A sleep of the client advances it, and lets other work run.
function clientOfApp() {
  const { clock, port } = app()
  return createClient({
    baseUrl: `http://127.0.0.1:${port}/api/v1`,
    ...app().issue(),
    runtime: {
      now: clock.now,
      async sleep(ms, signal) {
        await sleep(1, undefined, signal && { signal })
        clock.advance(ms)
      },
    },
  })
}

function stampNow(): string {
  return new Date().toISOString().replace('T', ' ').slice(0, -1)
}

const ids = Array.from({ length: 25 }, (_, n) => `c${String(n).padStart(2, '0')}`)

describe('the client', () => {
  it('reads lists, details and statistics, and rejects for an unknown slug', async () => {
    await store().putCampaigns(ids.map(id => campaignRow(id)))
    const client = clientOfApp()
    const list = await client.list({ limit: 10, category: 'Games' })
    expect(list.data.map(({ id }) => id)).toEqual(ids.slice(0, 10))
    expect(list.pagination).toEqual({ total: 25, limit: 10, offset: 0, has_more: true })
    expect(Date.parse(list.asOf ?? '')).toBeLessThan(Date.now())
    expect((await client.detail('slug-c03')).description).toBe('What it is about.')
    expect((await client.stats()).projects_total).toBe(25)
    await expect(client.detail('none')).rejects.toMatchObject({ code: 'not_found', status: 404 })
  })

  it('sends a conditional request after the cache period, and keeps the response on a 304', async () => {
    await store().putCampaigns([campaignRow('c1')])
    const client = clientOfApp()
    const first = await client.detail('slug-c1')
    app().clock.advance(61_000)
    await expect(client.detail('slug-c1')).resolves.toEqual(first)
  })

  it('mirrors all campaigns first, then each change once, across snapshots', async () => {
    await store().putCampaigns(ids.map(id => campaignRow(id)))
    const controller = new AbortController()
    const { signal } = controller
    const mirror = clientOfApp().mirror({ pageSize: 4, signal })
    const first: string[] = []
    for (let n = 0; n < 10; n++) first.push(idOf(await mirror.next()))
    // The next page is from another snapshot, in which all later campaigns have moved up.
    app().clock.advance(61_000)
    await store().putCampaigns(
      ['c00', 'c05'].map(id => campaignRow(id, { is_deleted: 1, updated_at: stampNow() })),
    )
    for (let n = 10; n < 25; n++) first.push(idOf(await mirror.next()))
    expect(first).toEqual(ids)
    await store().putCampaigns([campaignRow('c07', { title: 'Changed', updated_at: stampNow() })])
    await expect(mirror.next()).resolves.toMatchObject({
      value: { project: { id: 'c07', title: 'Changed' } },
    })
    controller.abort(new Error('over'))
    await expect(mirror.next()).rejects.toThrow()
  })

  it('finds by reconciliation which campaigns are no longer public', async () => {
    await store().putCampaigns(ids.map(id => campaignRow(id)))
    const changes: Change[] = []
    for await (const change of clientOfApp().reconcile({ held: [...ids, 'gone'], pageSize: 10 }))
      changes.push(change)
    expect(changes.filter(({ type }) => type === 'upsert')).toHaveLength(25)
    expect(changes.filter(({ type }) => type === 'removed')).toEqual([{ type: 'removed', id: 'gone' }])
  })

  it('reports refused credentials by their error code', async () => {
    const client = createClient({ baseUrl: `http://127.0.0.1:${app().port}/api/v1`, key: 'k', secret: 's' })
    await expect(client.stats()).rejects.toMatchObject({ code: 'unauthorized', status: 401 })
  })
})

function idOf({ value }: IteratorResult<Change>): string {
  return value.type === 'upsert' ? value.project.id : value.id
}
