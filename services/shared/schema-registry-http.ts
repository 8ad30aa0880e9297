/**
 * One request to a schema registry: bounded in time and size, its failures told without credentials.
 *
 * It is made with node:http and not with fetch, which cannot trust a certificate authority for one destination only and
 * follows redirects.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { type RegistryAnswer, SchemaRegistryError } from './schema-registry-answers.ts'

export interface RegistryAddress {
  /** `http(s)://host:port`, with a path where the registry is served under one; no user, password, query or fragment. */
  url: string
  /** Of HTTP basic authentication. */
  user?: string | undefined
  password?: string | undefined
  /** PEM text of the authority behind the registry's certificate, where it is none that Node knows. */
  caCertificate?: string | undefined
}

/** `body` makes it a POST. Rejects with a `SchemaRegistryError` where no whole answer came. */
export type RegistryRequest = (path: string, body?: object, signal?: AbortSignal) => Promise<RegistryAnswer>

const mediaType = 'application/vnd.schemaregistry.v1+json'
// A registry's own bound on a schema is 1 MiB.
const answerBytesMax = 4 * 1024 ** 2

/** Connects for each request anew: they are few. Throws `TypeError` on a URL that is not of the form above. */
export function createRegistryRequest(address: RegistryAddress, requestMsMax: number): RegistryRequest {
  const base = registryUrl(address.url)
  const basePath = base.pathname.replace(/\/$/, '')
  const send = base.protocol === 'https:' ? httpsRequest : httpRequest
  const options = {
    agent: false,
    headers: { accept: `${mediaType}, application/json`, ...authorization(address) },
    ...(address.caCertificate !== undefined && { ca: address.caCertificate }),
  }

  return async (path, body, signal) => {
    const late = AbortSignal.timeout(requestMsMax)
    const text = body && JSON.stringify(body)
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        const request = send(new URL(basePath + path, base), {
          ...options,
          method: text === undefined ? 'GET' : 'POST',
          signal: signal ? AbortSignal.any([late, signal]) : late,
        })
        request.on('response', resolve)
        // Also after the answer has begun: then the reading of it fails as well.
        request.on('error', reject)
        if (text !== undefined) request.setHeader('content-type', mediaType)
        request.end(text)
      })
      return { status: response.statusCode ?? 0, body: await readBody(response) }
    } catch (cause) {
      if (cause instanceof SchemaRegistryError) throw cause
      throw connectionError(cause, late.aborted && !signal?.aborted ? requestMsMax : undefined)
    }
  }
}

async function readBody(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > answerBytesMax) {
      throw new SchemaRegistryError(`its answer is longer than ${answerBytesMax} bytes`, { retryable: true })
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The chain of causes, which may hold the request, is not passed on. */
function connectionError(cause: unknown, lateMs: number | undefined): SchemaRegistryError {
  if (lateMs !== undefined) {
    return new SchemaRegistryError(`it did not answer within ${lateMs} ms`, { retryable: true })
  }
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'the request failed'
  return new SchemaRegistryError(`it gave no answer: ${code}`, { retryable: true })
}

function registryUrl(text: string): URL {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new TypeError("the schema registry's URL is not http(s)://host:port")
  }
  // It stands in messages, so a password in it would be told.
  if (url.username || url.password || url.search || url.hash) {
    throw new TypeError("the schema registry's URL may have no user, password, query or fragment")
  }
  return url
}

function authorization({ user, password = '' }: RegistryAddress): { authorization?: string } {
  if (user === undefined) return {}
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` }
}
