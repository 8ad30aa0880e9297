import { describe, expect, it } from 'vitest'
import { presentedCredentials } from '../../../../services/query/auth/presented-credentials.ts'
import type { Admission } from '../../../../services/query/http/admission.ts'
import { codeOf } from '../../../../services/query/http/client-errors.ts'
import { cacheHeaders, isNoneMatch, rateLimitHeaders } from '../../../../services/query/http/headers.ts'
import { isResource, refusal, refusalCodeOf } from '../../../../services/query/http/refusals.ts'
import { isWellFormed } from '../../../../services/query/http/well-formed.ts'
import { addressBucket } from '../../../../services/runtime/http/address-bucket.ts'

describe('presented credentials', () => {
  const pair = { 'x-api-key': 'k', 'x-api-secret': 's' }
  const presented = (headers: Record<string, string>, rawHeaders = Object.entries(headers).flat()) =>
    presentedCredentials({ headers, rawHeaders })

  it.each([
    ['two headers', pair, { key: 'k', secret: 's' }],
    ['one bearer header', { authorization: 'Bearer k:s' }, { key: 'k', secret: 's' }],
    [
      'a bearer scheme in any case, with spaces',
      { authorization: 'bEaReR   k:s' },
      { key: 'k', secret: 's' },
    ],
    [
      'a secret with colons: the first one divides',
      { authorization: 'Bearer k:s:t:' },
      { key: 'k', secret: 's:t:' },
    ],
    ['both forms that agree', { ...pair, authorization: 'Bearer k:s' }, { key: 'k', secret: 's' }],
    [
      'another scheme beside the two headers',
      { ...pair, authorization: 'Basic azpz' },
      { key: 'k', secret: 's' },
    ],
  ])('are read from %s', (_, headers, credentials) => {
    expect(presented(headers)).toEqual(credentials)
  })

  it.each([
    ['both forms that name different keys', { ...pair, authorization: 'Bearer other:s' }],
    ['both forms that name different secrets', { ...pair, authorization: 'Bearer k:other' }],
    ['two headers beside a bearer that is cut off', { ...pair, authorization: 'Bearer k' }],
    ['two headers beside an empty bearer', { ...pair, authorization: 'Bearer ' }],
    ['half of the two headers beside a bearer', { 'x-api-key': 'k', authorization: 'Bearer k:s' }],
    ['the other half beside a bearer', { 'x-api-secret': 's', authorization: 'Bearer k:s' }],
    ['two halves', { 'x-api-key': 'k', authorization: 'Bearer :s' }],
    ['nothing', {}],
    ['another scheme', { authorization: 'Basic azpz' }],
  ])('are not believed: %s', (_, headers) => {
    expect(presented(headers) ?? { key: '', secret: '' }).toEqual({ key: '', secret: '' })
  })
})

describe('a request that Node accepts', () => {
  it.each<[string, string[], boolean]>([
    ['1.1', ['Accept', '*', 'HOST', 'x'], true],
    ['1.1', ['Host', ''], true],
    ['1.1', ['Accept', 'host'], false],
    ['1.1', ['Host', 'x', 'host', 'x'], false],
    ['1.0', [], true],
    ['1.0', ['Host', 'x'], true],
    ['1.0', ['Host', 'x', 'Host', 'y'], false],
    ['2.0', ['Host', 'x'], false],
    ['0.9', [], false],
  ])('HTTP/%s with %j: well-formed is %s', (httpVersion, rawHeaders, expected) => {
    expect(isWellFormed({ httpVersion, rawHeaders })).toBe(expected)
  })
})

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

  it('count the limit in Unix seconds, and in seconds from now for the IETF draft', () => {
    const decision = { allowed: false, limit: 120, remaining: 0, resetAt: Math.floor(now / 1000) + 7 }
    expect(rateLimitHeaders(decision, { windowMs: 60_000, now })).toEqual({
      'x-ratelimit-limit': '120',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': String(Math.floor(now / 1000) + 7),
      'ratelimit-policy': '"default";q=120;w=60',
      ratelimit: '"default";r=0;t=7',
    })
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

describe('why a request is refused', () => {
  const decision = { allowed: true, limit: 1, remaining: 0, resetAt: 0 }
  const valid: Admission = {
    apiKey: { key: 'k', secretHash: 'h', scopes: ['read:public'] },
    namedKey: undefined,
    keyPrefix: 'k',
    decision,
    windowMs: 1,
  }
  const stranger: Admission = { ...valid, apiKey: undefined }
  const asked: Parameters<typeof refusalCodeOf>[1] = {
    failure: undefined,
    routing: 'found',
  }

  it('lets a valid key with the scope read', () => {
    expect(refusalCodeOf(valid, asked)).toBeUndefined()
  })

  it.each<[string, Admission, Partial<typeof asked>, string]>([
    ['a stranger', stranger, {}, 'unauthorized'],
    [
      'a key without the scope',
      { ...valid, apiKey: { key: 'k', secretHash: 'h', scopes: ['write'] } },
      {},
      'forbidden',
    ],
    ['an unknown path', stranger, { routing: 'unknown' }, 'not_found'],
    ['a wrong method', stranger, { routing: 'wrong_method' }, 'method_not_allowed'],
    ['a malformed request', valid, { failure: 'malformed_request' }, 'malformed_request'],
    [
      'no requests remaining',
      { ...valid, decision: { ...decision, allowed: false } },
      { routing: 'unknown' },
      'rate_limited',
    ],
  ])('%s', (_, admission, also, code) => {
    expect(refusalCodeOf(admission, { ...asked, ...also })).toBe(code)
  })

  it('recognises the paths of the API in every form of request target', () => {
    for (const path of [
      '/projects',
      '/projects/x',
      '/projects/%E0',
      '/stats',
      '/stats?x=/',
      '/projects/x?a#b',
    ]) {
      expect(isResource(`/api/v1${path}`)).toBe(true)
      expect(isResource(`http://host:80/api/v1${path}`)).toBe(true)
    }
    for (const path of ['/', '/?x', '/api/v1', '/api/v1/', '/api/v1?x', '/openapi.json', '/openapi.json#x']) {
      expect(isResource(path)).toBe(true)
      expect(isResource(`http://host:80${path}`)).toBe(true)
    }
    expect(isResource('http://host')).toBe(true)
    for (const path of [
      '*',
      '//',
      '/api',
      '/api/v1x',
      '/api/v1//',
      '/openapi.jsonx',
      '/api/v1/openapi.json',
      '/api/v1/projects/',
      '/api/v1/projects/a/b',
      '/api/v1/stats/',
      '/stats',
    ]) {
      expect(isResource(path)).toBe(false)
    }
  })

  it('tells a client how to authenticate, and which methods are allowed', () => {
    expect(refusal('unauthorized').headers['www-authenticate']).toMatch(/^Bearer /)
    expect(refusal('method_not_allowed').headers.allow).toBe('GET, OPTIONS')
  })
})

describe('the code of a parser error', () => {
  const packet = (text: string) => ({ code: 'HPE_INVALID_METHOD', rawPacket: Buffer.from(text) })
  it.each([
    ['too many headers', { code: 'HPE_HEADER_OVERFLOW' }, 'headers_too_large'],
    ['a request that does not arrive', { code: 'ERR_HTTP_REQUEST_TIMEOUT' }, 'request_timeout'],
    ['an unknown method', packet('FETCH /api/v1/stats HTTP/1.1\r\nHost: x\r\n'), 'method_not_allowed'],
    ['such a method of an unknown path', packet('FETCH /nowhere HTTP/1.1\r\n'), 'not_found'],
    [
      'an unknown method with an absolute target',
      packet('get http://x/api/v1/stats HTTP/1.1\r\n'),
      'method_not_allowed',
    ],
    ['noise', packet('\x16\x03\x01\x02'), 'malformed_request'],
    ['no version', packet('FETCH /api/v1/stats\r\n'), 'malformed_request'],
    ['anything else', { code: 'HPE_INVALID_CONSTANT' }, 'malformed_request'],
    ['nothing', {}, 'malformed_request'],
  ])('%s', (_, error, code) => {
    expect(codeOf(error)).toBe(code)
  })
})
