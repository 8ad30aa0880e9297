/** Responses of a deprecated version say so, in the headers of RFC 9745 and RFC 8594; others say nothing. */
import { describe, expect, it } from 'vitest'
import type { ApiVersion, Deprecation } from '../../../../contracts/api/versions.ts'
import { createVersionNotices, deprecatedMatcher } from '../../../../services/query/http/version-notices.ts'

const deprecation: Deprecation = {
  since: '2027-01-01T00:00:00Z',
  sunset: '2028-06-30T23:59:59Z',
  successor: '/api/v2',
}
const current: ApiVersion = { name: 'v2', basePath: '/api/v2', deprecation: null }
const old = (ends: Partial<Deprecation> = {}): ApiVersion => ({
  name: 'v1',
  basePath: '/api/v1',
  deprecation: { ...deprecation, ...ends },
})
const changesUrl = 'https://portal.example/changes'

describe('the notices of a version', () => {
  it('name since when it is deprecated, when it may end, where to read, and what to change to', () => {
    expect(createVersionNotices([old(), current], changesUrl).headersOf('/api/v1/stats')).toEqual({
      deprecation: '@1798761600',
      sunset: 'Fri, 30 Jun 2028 23:59:59 GMT',
      link:
        `<${changesUrl}>; rel="deprecation"; type="text/html", <${changesUrl}>; rel="sunset"; type="text/html", ` +
        '</api/v2>; rel="successor-version"',
    })
  })

  it('leave out what is not decided or not known', () => {
    const undecided = [old({ sunset: null, successor: null })]
    expect(createVersionNotices(undecided, undefined).headersOf('/api/v1')).toEqual({
      deprecation: '@1798761600',
    })
    expect(createVersionNotices(undecided, changesUrl).headersOf('/api/v1').link).toBe(
      `<${changesUrl}>; rel="deprecation"; type="text/html"`,
    )
  })

  it.each([
    ['/api/v1', true],
    ['/api/v1/', true],
    ['/api/v1?limit=1', true],
    ['/api/v1#x', true],
    ['/api/v1/projects/:slug', true],
    ['http://host:80/api/v1/stats', true],
    ['HTTPS://host/api/v1', true],
    ['/api/v10/stats', false],
    ['/api/v2/stats', false],
    ['/API/v1/stats', false],
    ['/', false],
    ['', false],
    ['*', false],
    ['/openapi.json', false],
    ['http://api/v1', false],
    ['/other/api/v1/stats', false],
  ])('hold for %s: %s', (target, isOld) => {
    const versions = [old(), current]
    expect(createVersionNotices(versions, changesUrl).headersOf(target).deprecation !== undefined).toBe(isOld)
    expect(deprecatedMatcher(versions)(target)).toBe(isOld)
  })

  it('are the same empty object for every target if no version is deprecated', () => {
    const { headersOf } = createVersionNotices([current], changesUrl)
    expect(headersOf('/api/v2/stats')).toBe(headersOf('/'))
    expect(headersOf('/')).toEqual({})
    expect(deprecatedMatcher([current])('/api/v2/stats')).toBe(false)
  })
})
