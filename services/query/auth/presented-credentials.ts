/** Reads the credentials of a request from its headers, and only from there. Pure. */
import type { IncomingMessage } from 'node:http'
import type { Credentials } from '../../api-keys/credentials.ts'
import { countOfHeader } from '../http/well-formed.ts'

/** The headers of a request: merged by Node, and as they arrived. */
export type PresentedHeaders = Pick<IncomingMessage, 'headers' | 'rawHeaders'>

/**
 * The credentials. They are empty if they are missing or incomplete. There are two forms: two headers (`X-API-Key` and
 * `X-API-Secret`), or one (`Authorization: Bearer <key>:<secret>`). If a request uses both forms, they must be equal: a
 * request with two identities gets neither. The same holds for a header that is sent twice. Other schemes of
 * `Authorization` are ignored, because they may be meant for a proxy.
 */
export function presentedCredentials({ headers, rawHeaders }: PresentedHeaders): Credentials {
  const pair = fromPair(headers['x-api-key'], headers['x-api-secret'])
  const bearer = isGivenTwice(headers.authorization, rawHeaders)
    ? incomplete
    : fromBearer(headers.authorization)
  if (pair === undefined || bearer === undefined) return pair ?? bearer ?? incomplete
  return pair.key === bearer.key && pair.secret === bearer.secret ? pair : incomplete
}

// A half-complete form counts as empty credentials, not as none, so that the other form cannot complete it.
const incomplete: Credentials = { key: '', secret: '' }

// Node keeps the first of two `Authorization` headers, but a proxy in front of the service may have trusted the second.
// Node joins repeated headers of the other form with a comma, and no key contains a comma.
function isGivenTwice(authorization: string | undefined, rawHeaders: readonly string[]): boolean {
  return authorization !== undefined && countOfHeader(rawHeaders, 'authorization') > 1
}

function fromPair(
  key: string | string[] | undefined,
  secret: string | string[] | undefined,
): Credentials | undefined {
  if (key === undefined && secret === undefined) return undefined
  return typeof key === 'string' && typeof secret === 'string' ? { key, secret } : incomplete
}

function fromBearer(authorization: string | undefined): Credentials | undefined {
  const token = /^bearer +(\S.*)$/i.exec(authorization ?? '')?.[1]
  if (token === undefined) return /^bearer *$/i.test(authorization ?? '') ? incomplete : undefined
  // A key contains no colon but a secret may, so the first colon separates them.
  const colon = token.indexOf(':')
  return colon < 0 ? incomplete : { key: token.slice(0, colon), secret: token.slice(colon + 1) }
}
