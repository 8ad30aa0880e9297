/** Snapshots of lists over Redis: the pages of one query come from one snapshot, whichever process answers them. */
import { randomUUID } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { listDefaults } from '../../../../contracts/api/parameters.ts'
import { createCache } from '../../../../services/query/cache/cache.ts'
import { createSharedValues } from '../../../../services/query/cache/shared-values.ts'
import {
  type CampaignLists,
  createCampaignLists,
  snapshotBudget,
  snapshots,
} from '../../../../services/query/lists/campaign-lists.ts'
import { joinedIdList } from '../../../../services/query/lists/id-list.ts'
import { newPrefix } from '../../../support/servers/redis.ts'
import { redisCacheSettings, type TestCacheSettings } from '../../../support/servers/redis-caches.ts'
import { redisService } from '../../../support/services/redis.ts'
import { useService } from '../../../support/services/test-service.ts'

const redis = useService(redisService)

const first = { ...listDefaults, limit: 1 }

/** The lists of one process. A load of it finds these ids. */
async function openLists(
  ids: readonly string[],
  { keyBytesMax, ...settings }: TestCacheSettings & { keyBytesMax?: number },
): Promise<CampaignLists> {
  const opened = await redisCacheSettings(redis(), settings)
  onTestFinished(() => opened.connection.close())
  const mayStore = snapshotBudget({ monotonicMs: () => performance.now() }, keyBytesMax)
  const list = { ids: joinedIdList(ids.join('/'), ids.length), asOf: '2026-03-01T12:00:00.000Z' }
  const shared = createSharedValues(snapshots, { ...opened, mayStore })
  const removals = async () => ({ ...list, keptSince: '2026-01-01T12:00:00.000Z' })
  return createCampaignLists(
    { select: async () => list, removals },
    createCache(snapshots, { ...opened, shared }),
    {
      listCacheMs: 60_000,
      newSnapshotId: randomUUID,
      now: Date.now,
    },
  )
}

const numbered = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}${n}`)

describe('the snapshots of several processes over one Redis', () => {
  it('are compressed if they are large, and preserve any id', async () => {
    const keyPrefix = newPrefix()
    const ids = numbered('campagne-éß漢🎲-', 20_000)
    const a = await openLists(ids, { keyPrefix })
    const b = await openLists([], { keyPrefix })
    await a.page(first)
    expect((await b.page({ ...first, limit: 100, offset: 19_950 })).ids).toEqual(ids.slice(19_950))
    const [place = ''] = await redis().client.keys(`${keyPrefix}*`)
    expect(await redis().client.strlen(place)).toBeLessThan(Buffer.byteLength(ids.join('/')) / 3)
  })

  it('stay in the process beyond what one key may store in a minute, and other keys are not affected', async () => {
    const keyPrefix = newPrefix()
    const ids = numbered('a', 100)
    const a = await openLists(ids, { keyPrefix, keyBytesMax: 1_000 })
    const lists = Array.from({ length: 20 }, (_, n) => ({ ...first, updatedSince: n }))
    for (const list of lists) await a.page(list, 'a key with many lists')
    const stored = await redis().client.keys(`${keyPrefix}*`)
    expect(stored.length).toBe(Math.floor(1_000 / ids.join('/').length))
    // The process still answers every page of them from one snapshot.
    const last = { ...first, updatedSince: 19 }
    const page = await a.page({ ...last, offset: 1 })
    expect(page.ids).toEqual(['a1'])
    expect((await a.page({ ...last, offset: 2 })).snapshotId).toBe(page.snapshotId)
    await a.page({ ...first, updatedSince: 20 }, 'another key')
    expect(await redis().client.keys(`${keyPrefix}*`)).toHaveLength(stored.length + 1)
  })
})
