import { describe, expect, it } from 'vitest'
import { createCache } from '../../../../services/query/cache/cache.ts'
import { responses } from '../../../../services/query/cache/response-cache.ts'
import { testClock } from '../../../support/query-app.ts'
import { bytesMax, describeResponseCache } from './response-cache.conformance.ts'

describeResponseCache('memory', async () => {
  const clock = testClock()
  return {
    cache: createCache(responses, { bytesMax, now: clock.now }),
    now: async () => clock.now(),
    advance: async ms => clock.advance(ms),
    close: async () => undefined,
  }
})

describe('response cache in memory', () => {
  it('stays within its memory limit: evicts the oldest entries', async () => {
    const clock = testClock()
    const cache = createCache(responses, { bytesMax, now: clock.now })
    const body = Buffer.alloc(8 * 1024)
    const rest = { etag: 'W/"x"', asOf: null, snapshotId: null, link: null }
    let loads = 0
    const load = async () => {
      loads++
      return { body, ...rest, createdAt: clock.now(), expiresAt: clock.now() + 60_000 }
    }
    for (let n = 0; n < 20; n++) await cache.get(`key ${n}`, load)
    loads = 0
    for (let n = 0; n < 20; n++) await cache.get(`key ${19 - n}`, load)
    expect(loads).toBeGreaterThanOrEqual(20 - bytesMax / body.length)
    expect(loads).toBeLessThan(20)
  })
})
