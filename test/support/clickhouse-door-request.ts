/** What a request of ClickHouse's HTTP interface asks for. Pure but for reading the body. */
import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { createGunzip } from 'node:zlib'
import type { DoorStatement } from './clickhouse-door-engine.ts'
import { DoorException } from './clickhouse-door-response.ts'

export interface DoorRequest {
  queryId: string | undefined
  statement: DoorStatement
  /** Whether the answer is compressed. */
  gzip: boolean
  /** Between two progress headers, ms; `undefined` where none are asked for. */
  progressMs: number | undefined
}

export interface DoorCredentials {
  user: string
  password: string
}

// Parameters of the interface itself; all others are settings.
const ownParameters = new Set([
  'query',
  'query_id',
  'database',
  'default_format',
  'user',
  'password',
  'quota_key',
  'wait_end_of_query',
  'buffer_size',
])
// What would change the meaning of a request, were it ignored.
const missingParameters = ['session_id', 'role', 'compress', 'decompress']
const bodyBytesMax = 268_435_456

/** Throws `DoorException` where the request asks for what the door does not have. */
export async function readDoorRequest(request: IncomingMessage, url: URL): Promise<DoorRequest> {
  const body = await readBody(request)
  const given = url.searchParams
  for (const name of missingParameters) {
    if (given.has(name)) throw notImplemented(`the parameter ${name}`)
  }
  const entries = [...given].filter(([name]) => !ownParameters.has(name))
  for (const [name] of entries) {
    if (!/^\w+$/.test(name)) throw new DoorException(115, 'UNKNOWN_SETTING', `Unknown setting '${name}'`)
  }
  const settings = entries.filter(([name]) => !name.startsWith('param_'))
  const parameters = entries.filter(([name]) => name.startsWith('param_'))
  // As the server: a GET changes nothing.
  if (request.method === 'GET') settings.push(['readonly', '2'])
  return {
    queryId: given.get('query_id') ?? undefined,
    statement: {
      sql: [given.get('query') ?? '', body].filter(part => part !== '').join('\n'),
      format: given.get('default_format') ?? 'TabSeparated',
      database: given.get('database') ?? undefined,
      settings,
      parameters: parameters.map(([name, value]) => [name.slice('param_'.length), value]),
    },
    gzip:
      given.get('enable_http_compression') === '1' &&
      /\bgzip\b/.test(String(request.headers['accept-encoding'])),
    progressMs:
      given.get('send_progress_in_http_headers') === '1'
        ? Number(given.get('http_headers_progress_interval_ms') ?? 100)
        : undefined,
  }
}

/** Throws `DoorException` unless the request carries these credentials, in one of the server's three ways. */
export function authenticate(request: IncomingMessage, url: URL, expected: DoorCredentials): void {
  const given = credentialsOf(request, url)
  if (given.user === expected.user && given.password === expected.password) return
  throw new DoorException(
    516,
    'AUTHENTICATION_FAILED',
    `${given.user}: Authentication failed: password is incorrect, or there is no user with such name.`,
  )
}

function credentialsOf({ headers }: IncomingMessage, url: URL): DoorCredentials {
  const basic = /^Basic (.+)$/i.exec(headers.authorization ?? '')?.[1]
  if (basic !== undefined) {
    const [user = '', ...rest] = Buffer.from(basic, 'base64').toString().split(':')
    return { user, password: rest.join(':') }
  }
  return {
    user: String(headers['x-clickhouse-user'] ?? url.searchParams.get('user') ?? 'default'),
    password: String(headers['x-clickhouse-key'] ?? url.searchParams.get('password') ?? ''),
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  if (request.headers['content-type']?.startsWith('multipart/')) throw notImplemented('a multipart body')
  const encoding = request.headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity' && encoding !== 'gzip') throw notImplemented(`a body in ${encoding}`)
  if (Number(request.headers['content-length'] ?? 0) > bodyBytesMax) throw tooLarge()
  const body = await buffer(encoding === 'gzip' ? request.pipe(createGunzip()) : request)
  if (body.length > bodyBytesMax) throw tooLarge()
  return body.toString()
}

function tooLarge(): DoorException {
  return new DoorException(169, 'QUERY_IS_TOO_LARGE', `The body is larger than ${bodyBytesMax} bytes`)
}

function notImplemented(what: string): DoorException {
  return new DoorException(
    48,
    'NOT_IMPLEMENTED',
    `This stand-in for a ClickHouse server does not take ${what}`,
  )
}
