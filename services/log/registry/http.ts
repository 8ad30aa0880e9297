/**
 * One request to a schema registry: bounded in time and size. Its error messages contain no credentials.
 *
 * It uses undici's `request`, which does not follow redirects and can trust a certificate authority for one destination.
 */
import { Agent, errors, request } from 'undici'
import { type RegistryAnswer, SchemaRegistryError } from './answers.ts'

export interface RegistryAddress {
  /** `http(s)://host:port`, with a path if the registry is served under one. No user, password, query or fragment. */
  url: string
  /** For HTTP basic authentication. */
  user?: string | undefined
  password?: string | undefined
  /** PEM text of the registry's certificate authority, if Node does not know it. */
  caCertificate?: string | undefined
}

const mediaType = 'application/vnd.schemaregistry.v1+json'
// A registry's own limit for a schema is 1 MiB.
const answerBytesMax = 4 * 1024 ** 2

/** Opens a new connection for each request, because requests are few. */
export function createRegistryRequest(address: RegistryAddress, requestMsMax: number) {
  const base = new URL(address.url)
  const basePath = base.pathname.replace(/\/$/, '')
  const headers = { accept: `${mediaType}, application/json`, ...authorization(address) }
  // Without keep-alive: requests are few, and an idle connection would keep the process alive.
  const dispatcher = new Agent({
    pipelining: 0,
    maxResponseSize: answerBytesMax,
    connect: address.caCertificate === undefined ? {} : { ca: address.caCertificate },
  })

  /** With `body` it is a POST. Rejects with a `SchemaRegistryError` if no complete answer came. */
  return async (path: string, body?: object, signal?: AbortSignal): Promise<RegistryAnswer> => {
    const late = AbortSignal.timeout(requestMsMax)
    const content = body && { body: JSON.stringify(body), headers: { ...headers, 'content-type': mediaType } }
    try {
      const response = await request(new URL(basePath + path, base), {
        method: content ? 'POST' : 'GET',
        headers,
        ...content,
        signal: signal ? AbortSignal.any([late, signal]) : late,
        dispatcher,
      })
      return { status: response.statusCode, body: await response.body.text() }
    } catch (cause) {
      throw connectionError(cause, late.aborted && !signal?.aborted ? requestMsMax : undefined)
    }
  }
}

/** The chain of causes may contain the request, so it is not passed on. */
function connectionError(cause: unknown, lateMs: number | undefined): SchemaRegistryError {
  if (lateMs !== undefined) {
    return new SchemaRegistryError(`it did not answer within ${lateMs} ms`, { retryable: true })
  }
  if (cause instanceof errors.ResponseExceededMaxSizeError) {
    return new SchemaRegistryError(`its answer is longer than ${answerBytesMax} bytes`, { retryable: true })
  }
  const hasCode = cause instanceof Error && 'code' in cause && typeof cause.code === 'string'
  const code = hasCode ? cause.code : 'the request failed'
  return new SchemaRegistryError(`it did not answer: ${code}`, { retryable: true })
}

function authorization({ user, password = '' }: RegistryAddress): { authorization?: string } {
  if (user === undefined) return {}
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` }
}
