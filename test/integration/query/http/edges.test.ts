/**
 * Edge cases of the API (1 of 3): every kind of response to readable HTTP. Each row has the request, the response, the
 * bucket that is counted (of a key, of an address, or none), and whether the connection continues.
 */
import { describe } from 'vitest'
import { KeysUnavailableError } from '../../../../services/query/auth/key-ring.ts'
import { fakeTables } from '../../../support/query-fake-tables.ts'
import { sendRaw } from '../../../support/raw-http.ts'
import {
  ask,
  bare,
  type Edge,
  itAnswers,
  outsider,
  pair,
  useEdgeApp,
} from '../../../support/raw-http-contract.ts'

const routes: Edge[] = [
  ['a list', ask('GET /api/v1/projects'), '200', 'key', 'goes on'],
  ['a page with a next one', ask('GET /api/v1/projects?limit=1'), '200', 'key', 'goes on'],
  ['a campaign', ask('GET /api/v1/projects/a-slug'), '200', 'key', 'goes on'],
  ['the statistics', ask('GET /api/v1/stats'), '200', 'key', 'goes on'],
  ['an answer at hand', ask('GET /api/v1/stats', 'If-None-Match: *'), '304', 'key', 'goes on'],
  ['a list at hand', ask('GET /api/v1/projects', 'If-None-Match: *'), '304', 'key', 'goes on'],
  ['no such campaign', ask('GET /api/v1/projects/unknown'), '404 not_found', 'key', 'goes on'],
  ['without credentials', bare('GET /api/v1/stats'), '401 unauthorized', 'address', 'goes on'],
  [
    'no such campaign, without credentials',
    bare('GET /api/v1/projects/x'),
    '401 unauthorized',
    'address',
    'goes on',
  ],
  ['without the scope', bare('GET /api/v1/stats', pair(outsider)), '403 forbidden', 'key', 'goes on'],
]

const targets: Edge[] = [
  ['an unknown path', ask('GET /api/v1/nowhere'), '404 not_found', 'key', 'goes on'],
  ['another version', ask('GET /api/v2/stats'), '404 not_found', 'key', 'goes on'],
  ['another case', ask('GET /API/v1/stats'), '404 not_found', 'key', 'goes on'],
  ['a trailing slash', ask('GET /api/v1/stats/'), '404 not_found', 'key', 'goes on'],
  ['a doubled slash', ask('GET /api/v1//stats'), '404 not_found', 'key', 'goes on'],
  ['an empty slug', ask('GET /api/v1/projects/'), '404 not_found', 'key', 'goes on'],
  ['a slug that is a path', ask('GET /api/v1/projects/a-slug/rewards'), '404 not_found', 'key', 'goes on'],
  ['a slug that climbs', ask('GET /api/v1/projects/../stats'), '404 not_found', 'key', 'goes on'],
  ['a slug that decodes to one', ask('GET /api/v1/projects/..%2Fstats'), '404 not_found', 'key', 'goes on'],
  ['a slug of NUL', ask('GET /api/v1/projects/%00'), '404 not_found', 'key', 'goes on'],
  ['a slug of 10 KB', ask(`GET /api/v1/projects/${'x'.repeat(1e4)}`), '404 not_found', 'key', 'goes on'],
  ['an unknown path of 10 KB', ask(`GET /${'x'.repeat(1e4)}`), '404 not_found', 'key', 'goes on'],
  [
    'a slug that is badly encoded',
    ask('GET /api/v1/projects/%E0%A4%A'),
    '400 malformed_request',
    'key',
    'goes on',
  ],
  ['a path that is badly encoded', ask('GET /nowhere/%zz'), '400 malformed_request', 'key', 'goes on'],
  ['a fragment', ask('GET /api/v1/stats#x'), '200', 'key', 'goes on'],
  ['an absolute target', ask('GET http://x/api/v1/stats'), '200', 'key', 'goes on'],
  ['an asterisk', ask('GET *'), '404 not_found', 'key', 'goes on'],
  ['ops paths', ask('GET /metrics'), '404 not_found', 'key', 'goes on'],
]

const publicResources: Edge[] = [
  ['the root, as an absolute target', bare('GET http://x'), '200', 'address', 'goes on'],
  [
    'POST to an absolute target without a path',
    bare('POST http://x', 'Content-Length: 0'),
    '405 method_not_allowed',
    'address',
    'goes on',
  ],
  ['the root', bare('GET /'), '200', 'address', 'goes on'],
  ['the root, with a key', ask('GET /'), '200', 'key', 'goes on'],
  ['the root, at hand', bare('GET /', 'If-None-Match: *'), '304', 'address', 'goes on'],
  ['the root, with a wrong key', bare('GET /', 'X-API-Key: nobody'), '200', 'address', 'goes on'],
  ['the root, without the scope', bare('GET /', pair(outsider)), '200', 'key', 'goes on'],
  ['the root, with a query', bare('GET /?limit=0'), '200', 'address', 'goes on'],
  ['the base address', bare('GET /api/v1'), '200', 'address', 'goes on'],
  ['the base address with a slash', bare('GET /api/v1/'), '200', 'address', 'goes on'],
  ['the OpenAPI document', bare('GET /openapi.json'), '200', 'address', 'goes on'],
  ['the OpenAPI document, with a key', ask('GET /openapi.json'), '200', 'key', 'goes on'],
  [
    'the OpenAPI document, at hand',
    bare('GET /openapi.json', 'If-None-Match: *'),
    '304',
    'address',
    'goes on',
  ],
  ['HEAD of the root', bare('HEAD /'), '405 method_not_allowed', 'address', 'goes on'],
  ['POST to the root', bare('POST /', 'Content-Length: 0'), '405 method_not_allowed', 'address', 'goes on'],
  [
    'POST to the base',
    bare('POST /api/v1', 'Content-Length: 0'),
    '405 method_not_allowed',
    'address',
    'goes on',
  ],
  ['OPTIONS of the root', bare('OPTIONS /'), '204', 'address', 'goes on'],
  ['OPTIONS of the document', bare('OPTIONS /openapi.json'), '204', 'address', 'goes on'],
  ['an unknown version', bare('GET /api/v2'), '404 not_found', 'address', 'goes on'],
  ['above the versions', bare('GET /api'), '404 not_found', 'address', 'goes on'],
  ['a document elsewhere', bare('GET /api/v1/openapi.json'), '404 not_found', 'address', 'goes on'],
]

const parameters: Edge[] = [
  ['limit=0', ask('GET /api/v1/projects?limit=0'), '400 invalid_parameter', 'key', 'goes on'],
  ['limit=101', ask('GET /api/v1/projects?limit=101'), '400 invalid_parameter', 'key', 'goes on'],
  ['limit without a value', ask('GET /api/v1/projects?limit'), '400 invalid_parameter', 'key', 'goes on'],
  ['offset=-1', ask('GET /api/v1/projects?offset=-1'), '400 invalid_parameter', 'key', 'goes on'],
  ['status=DRAFT', ask('GET /api/v1/projects?status=DRAFT'), '400 invalid_parameter', 'key', 'goes on'],
  ['sort=oldest', ask('GET /api/v1/projects?sort=oldest'), '400 invalid_parameter', 'key', 'goes on'],
  ['category=', ask('GET /api/v1/projects?category='), '400 invalid_parameter', 'key', 'goes on'],
  [
    'a bad encoding',
    ask('GET /api/v1/projects?category=%E0%A4%A'),
    '400 invalid_parameter',
    'key',
    'goes on',
  ],
  ['no timestamp', ask('GET /api/v1/projects?updated_since=now'), '400 invalid_parameter', 'key', 'goes on'],
  [
    'a repeated parameter',
    ask('GET /api/v1/projects?limit=1&limit=1'),
    '400 invalid_parameter',
    'key',
    'goes on',
  ],
  [
    'a repeated parameter, encoded',
    ask('GET /api/v1/projects?limit=1&l%69mit=1'),
    '400 invalid_parameter',
    'key',
    'goes on',
  ],
  ['an unknown parameter twice', ask('GET /api/v1/projects?x=1&x=2'), '200', 'key', 'goes on'],
  ['an unknown one, badly encoded', ask('GET /api/v1/projects?x=%zz'), '200', 'key', 'goes on'],
  ['a list parameter elsewhere', ask('GET /api/v1/stats?limit=0'), '200', 'key', 'goes on'],
  [
    'a malformed parameter, without credentials',
    bare('GET /api/v1/projects?limit=0'),
    '401 unauthorized',
    'address',
    'goes on',
  ],
]

const methods: Edge[] = [
  ['HEAD', ask('HEAD /api/v1/stats'), '405 method_not_allowed', 'key', 'goes on'],
  ['HEAD of an unknown path', ask('HEAD /nowhere'), '404 not_found', 'key', 'goes on'],
  ['POST', ask('POST /api/v1/stats', 'Content-Length: 0'), '405 method_not_allowed', 'key', 'goes on'],
  [
    'POST without credentials',
    bare('POST /api/v1/stats', 'Content-Length: 0'),
    '405 method_not_allowed',
    'address',
    'goes on',
  ],
  ['POST to an unknown path', ask('POST /nowhere', 'Content-Length: 0'), '404 not_found', 'key', 'goes on'],
  [
    'POST to an absolute target',
    ask('POST http://x/api/v1/stats'),
    '405 method_not_allowed',
    'key',
    'goes on',
  ],
  ['PUT', ask('PUT /api/v1/projects/a-slug'), '405 method_not_allowed', 'key', 'goes on'],
  ['DELETE', ask('DELETE /api/v1/projects/a-slug'), '405 method_not_allowed', 'key', 'goes on'],
  ['PATCH', ask('PATCH /api/v1/projects/a-slug'), '405 method_not_allowed', 'key', 'goes on'],
  ['TRACE', ask('TRACE /api/v1/stats'), '405 method_not_allowed', 'key', 'goes on'],
  ['PROPFIND', ask('PROPFIND /api/v1/stats'), '405 method_not_allowed', 'key', 'goes on'],
  ['QUERY', ask('QUERY /api/v1/projects'), '405 method_not_allowed', 'key', 'goes on'],
  // CONNECT and methods that the parser does not know end the connection.
  ['CONNECT', ask('CONNECT x:443'), '405 method_not_allowed', 'key', 'ends'],
  ['CONNECT without credentials', bare('CONNECT x:443'), '405 method_not_allowed', 'address', 'ends'],
  ['get', ask('get /api/v1/stats'), '405 method_not_allowed', 'address', 'ends'],
  ['FETCH', ask('FETCH /api/v1/stats'), '405 method_not_allowed', 'address', 'ends'],
  [
    'FETCH of an absolute target',
    ask('FETCH http://x/api/v1/stats'),
    '405 method_not_allowed',
    'address',
    'ends',
  ],
  ['FETCH of an unknown path', ask('FETCH /nowhere'), '404 not_found', 'address', 'ends'],
  ['OPTIONS', bare('OPTIONS /api/v1/projects'), '204', 'address', 'goes on'],
  ['OPTIONS with credentials', ask('OPTIONS /api/v1/projects'), '204', 'address', 'goes on'],
  ['OPTIONS of an unknown path', bare('OPTIONS /nowhere'), '204', 'address', 'goes on'],
  ['OPTIONS of everything', bare('OPTIONS *'), '204', 'address', 'goes on'],
  ['OPTIONS of a bad encoding', bare('OPTIONS /api/v1/projects/%E0'), '204', 'address', 'goes on'],
]

// The limit is checked before the path, the method and the parameters. A malformed request gets its own error anyway.
const withoutPlaces: Edge[] = [
  ['a key', ask('GET /api/v1/stats'), '429 rate_limited', 'nothing', 'ends'],
  [
    'a key, with a body that the client has',
    ask('GET /api/v1/stats', 'If-None-Match: *'),
    '429 rate_limited',
    'nothing',
    'ends',
  ],
  ['a key, of an unknown path', ask('GET /nowhere'), '429 rate_limited', 'nothing', 'ends'],
  ['a key, by another method', ask('POST /api/v1/stats'), '429 rate_limited', 'nothing', 'ends'],
  [
    'a key, with a malformed parameter',
    ask('GET /api/v1/projects?limit=0'),
    '429 rate_limited',
    'nothing',
    'ends',
  ],
  ['an address', bare('GET /api/v1/stats'), '429 rate_limited', 'nothing', 'ends'],
  ['an address, of a bad encoding', bare('GET /%zz'), '429 rate_limited', 'nothing', 'ends'],
  ['a preflight', bare('OPTIONS /api/v1/stats'), '429 rate_limited', 'nothing', 'ends'],
  ['no request', 'GET\r\n\r\n', '400 malformed_request', 'nothing', 'ends'],
]

const whileAway: Edge[] = [
  ['a list', ask('GET /api/v1/projects'), '500 internal_error', 'key', 'goes on'],
  ['a campaign', ask('GET /api/v1/projects/a-slug'), '500 internal_error', 'key', 'goes on'],
  ['the statistics', ask('GET /api/v1/stats'), '500 internal_error', 'key', 'goes on'],
  ['an answer at hand', ask('GET /api/v1/stats', 'If-None-Match: *'), '500 internal_error', 'key', 'goes on'],
  ['a malformed parameter', ask('GET /api/v1/projects?limit=0'), '400 invalid_parameter', 'key', 'goes on'],
  ['without credentials', bare('GET /api/v1/stats'), '401 unauthorized', 'address', 'goes on'],
]

const whileKeysAreUnknown: Edge[] = [
  ['a key', ask('GET /api/v1/stats'), '500 internal_error', 'nothing', 'goes on'],
  ['a request without credentials', bare('GET /api/v1/stats'), '500 internal_error', 'nothing', 'goes on'],
  ['a bad encoding', ask('GET /%zz'), '500 internal_error', 'nothing', 'goes on'],
  ['CONNECT', ask('CONNECT x:443'), '405 method_not_allowed', 'nothing', 'ends'],
  ['a preflight', bare('OPTIONS /api/v1/stats'), '204', 'address', 'goes on'],
]

describe('a readable request is answered as the contract says', () => {
  const app = useEdgeApp()
  describe('by route', () => itAnswers(routes, app))
  describe('by target', () => itAnswers(targets, app))
  describe('by public resource', () => itAnswers(publicResources, app))
  describe('by parameter', () => itAnswers(parameters, app))
  describe('by method', () => itAnswers(methods, app))

  describe('while no requests remain, for', () => {
    const full = useEdgeApp({ keyLimit: 1, addressLimit: 1 }, async ({ port }) => {
      for (const one of [ask('GET /api/v1/stats'), bare('GET /api/v1/stats'), bare('OPTIONS /')]) {
        await sendRaw(port, one)
      }
    })
    itAnswers(withoutPlaces, full)
  })

  describe('while ClickHouse is unavailable, of', () => {
    const away = () => {
      throw new Error('Code: 210. DB::NetException: connect to 10.1.2.3:8123')
    }
    const { tables } = fakeTables({ snapshot: away, projects: away, detail: away, stats: away })
    itAnswers(whileAway, useEdgeApp({ tables }))
  })

  describe('while the keys are not known, to', () => {
    const lookup = () => {
      throw new KeysUnavailableError('connect to 10.1.2.3:8123')
    }
    itAnswers(whileKeysAreUnknown, useEdgeApp({ overrides: { keyRing: { lookup } } }))
  })
})
