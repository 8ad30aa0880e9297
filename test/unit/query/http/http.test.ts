import { describe, expect, it } from 'vitest'
import type { ApiVersion, Deprecation } from '../../../../contracts/api/versions.ts'
import {
  cacheHeaders,
  createVersionNotices,
  rateLimitHeaders,
} from '../../../../services/query/http/answer.ts'
import { appOptionsOf } from '../../../../services/query/options.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import { addressBucket } from '../../../../services/runtime/http/addresses.ts'
import { isNoneMatch } from '../../../../services/runtime/http/request-headers.ts'

describe('the bucket of an address', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::ffff:909:909', '9.9.9.9'],
    ['0:0:0:0:0:FFFF:0909:0909', '9.9.9.9'],
    ['[::ffff:0:1]:51034', '0.0.0.1'],
    ['::fffe:909:909', '0:0:0:0::/64'],
    ['1:2:3:4:0:ffff:909:909', '1:2:3:4::/64'],
    ['::2:3:4:5:6:7:8', '0:2:3:4::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::9', '2001:db8:1:2::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['64:ff9b::192.0.2.7', '64:ff9b:0:0::/64'],
    ['2001:db8::', '2001:db8:0:0::/64'],
    ['192.0.2.7:51034', '192.0.2.7'],
    ['[2001:db8:1:2::9]:51034', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::9]', '2001:db8:1:2::/64'],
    ['[::ffff:192.0.2.7]:51034', '192.0.2.7'],
    ['host:51034', 'unknown'],
    ['unknown', 'unknown'],
    ['x'.repeat(10_000), 'unknown'],
    [undefined, 'unknown'],
  ])('%s', (address, bucket) => {
    expect(addressBucket(address)).toBe(bucket)
  })
})

describe('response headers', () => {
  const now = Date.parse('2026-03-01T12:00:00.250Z')
  const entry = {
    body: Buffer.alloc(0),
    etag: 'W/"tag"',
    asOf: '2026-03-01T11:59:55.000Z',
    snapshotId: 'a-snapshot',
    link: null,
    createdAt: now - 12_400,
    expiresAt: now + 47_600,
  }

  it('give lifetime and age in whole seconds, rounded so that no cache keeps a response too long', () => {
    expect(cacheHeaders(entry, now)).toMatchObject({
      age: '13',
      'cache-control': 'private, max-age=60',
      etag: 'W/"tag"',
      'x-data-as-of': '2026-03-01T11:59:55.000Z',
      'x-snapshot-id': 'a-snapshot',
    })
    expect(cacheHeaders({ ...entry, asOf: null }, now)).not.toHaveProperty('x-data-as-of')
    expect(cacheHeaders({ ...entry, snapshotId: null }, now)).not.toHaveProperty('x-snapshot-id')
    expect(cacheHeaders(entry, now)).not.toHaveProperty('link')
    expect(cacheHeaders(entry, entry.expiresAt + 5000).age).toBe('65')
    expect(cacheHeaders(entry, entry.createdAt - 5000).age).toBe('0')
  })

  it('count the limit in Unix seconds, and in seconds from now for the IETF draft, never too early', () => {
    const second = Math.floor(now / 1000)
    const headersAt = (delayMs: number, now: number) =>
      rateLimitHeaders({ allowed: false, limit: 120, remaining: 0, delayMs }, { windowMs: 60_000, now })
    expect(headersAt(6_001, second * 1000)).toEqual({
      'x-ratelimit-limit': '120',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': String(second + 7),
      'ratelimit-policy': '"default";q=120;w=60',
      ratelimit: '"default";r=0;t=7',
    })
    const reset = (delayMs: number, ms: number) =>
      Number(headersAt(delayMs, second * 1000 + ms)['x-ratelimit-reset']) - second
    expect([reset(0, 999), reset(1, 0), reset(1, 999), reset(2, 999)]).toEqual([0, 1, 1, 2])
  })

  it.each([
    ['W/"a"', true],
    ['"a"', true],
    ['"b", W/"a"', true],
    ['"b",W/"a","c"', true],
    ['*', true],
    [' W/"a" ', true],
    ['W/"b"', false],
    ['a', false],
    ['', false],
    [undefined, false],
  ])('If-None-Match: %s', (header, matches) => {
    expect(isNoneMatch(header, 'W/"a"')).toBe(matches)
  })
})

describe('the notices of a deprecated version', () => {
  const deprecation: Deprecation = { since: '2027-01-01T00:00:00Z', sunset: null, successor: null }
  const versions: ApiVersion[] = [
    { name: 'v1', basePath: '/api/v1', deprecation },
    { name: 'v2', basePath: '/api/v2', deprecation: null },
  ]

  it('leave out what is not decided or not known', () => {
    const changesUrl = 'https://portal.example/changes'
    const [unknown, known] = [undefined, changesUrl].map(url => createVersionNotices(versions, url))
    expect(unknown?.headersOf('/api/v1')).toEqual({ deprecation: '@1798761600' })
    expect(known?.headersOf('/api/v1').link).toBe(`<${changesUrl}>; rel="deprecation"; type="text/html"`)
  })

  it.each([
    ['/api/v1', true],
    ['/api/v1?limit=1', true],
    ['/api/v1#x', true],
    ['HTTPS://host/api/v1', true],
    ['/api/v10/stats', false],
    ['/api/v2/stats', false],
    ['http://api/v1', false],
    ['/other/api/v1/stats', false],
  ])('hold for %s: %s', (target, isOld) => {
    const { headersOf } = createVersionNotices(versions, undefined)
    expect(headersOf(target).deprecation !== undefined).toBe(isOld)
  })
})

it('no connection is cut before the statements of its request may take no longer', () => {
  const config = readConfig({ PLEDGEVIEW_QUERY_MS_MAX: '60000' })
  expect(appOptionsOf(config, 'pepper').socketTimeoutMs).toBeGreaterThan(2 * 60_000)
})
