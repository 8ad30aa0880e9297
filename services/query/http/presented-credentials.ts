/** Reads the credentials that a request presents, from its headers and from nowhere else. Pure. */
import type { IncomingMessage } from 'node:http'
import type { Credentials } from '../../shared/credentials.ts'
import { countOfHeader } from './well-formed.ts'

/** The headers of a request, as Node has merged them and as they came. */
export type PresentedHeaders = Pick<IncomingMessage, 'headers' | 'rawHeaders'>

/**
 * The credentials, or `undefined` where there are none or they are incomplete. Two headers (`X-API-Key` and
 * `X-API-Secret`) or one (`Authorization: Bearer <key>:<secret>`); where both are sent they must be equal, for a
 * request that says two things about who it is from must not be believed either of them; nor is one that gives a header
 * twice. Other schemes of `Authorization` are for somebody else, a proxy for example, and count as absent.
 */
export function presentedCredentials({ headers, rawHeaders }: PresentedHeaders): Credentials | undefined {
  const pair = fromPair(headers['x-api-key'], headers['x-api-secret'])
  const bearer = isGivenTwice(headers.authorization, rawHeaders)
    ? incomplete
    : fromBearer(headers.authorization)
  if (pair === undefined || bearer === undefined) return pair ?? bearer
  return pair.key === bearer.key && pair.secret === bearer.secret && pair.key !== '' ? pair : undefined
}

// What is half there is an empty credential rather than none, so that it cannot be completed by the other form.
const incomplete: Credentials = { key: '', secret: '' }

// Of two `Authorization` Node keeps the first; whoever stands before the service may have believed the second. The two
// headers of the other form it joins, and no key has a comma.
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
  // A key holds no colon, a secret may: the first one divides them.
  const colon = token.indexOf(':')
  return colon < 0 ? incomplete : { key: token.slice(0, colon), secret: token.slice(colon + 1) }
}
