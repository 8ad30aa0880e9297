/** Says why there was no response, or why a response cannot be the API's. Pure. */
import { basePath } from '../conventions.ts'

/** What the client knows of a response that it does not accept. */
export interface StrangeAnswer {
  status: number
  text: string
  /** The address that answered, after redirects; empty if it is not known. */
  url: string
}

// A chain of causes is short. This ends one that refers to itself.
const causesMax = 10

/** Why fetch rejected: the messages of all causes. */
export function failureText(error: unknown): string {
  const texts = causesOf(error).map(({ code, message }) => message || code)
  const known = texts.filter(text => typeof text === 'string' && text !== '')
  return [...new Set(known)].join(': ') || 'the request failed'
}

interface Cause {
  code?: unknown
  message?: unknown
  cause?: unknown
  /** Of an AggregateError: one for each address of a host. */
  errors?: unknown
}

function causesOf(error: unknown): Cause[] {
  const causes: Cause[] = []
  for (let next = error; typeof next === 'object' && next !== null && causes.length < causesMax; ) {
    const cause: Cause = next
    causes.push(cause)
    next = cause.cause ?? (Array.isArray(cause.errors) ? cause.errors[0] : undefined)
  }
  return causes
}

/** For a response that has not the form of the API: what came instead, and what `baseUrl` should be. */
export function notThisApi({ status, text, url }: StrangeAnswer, base: string): string {
  const from = redirectOf(url, base)
  const redirected = from === undefined ? '' : `, after a redirect to ${from}`
  return `not a response of this API: status ${status} with ${kindOf(text)} from ${base}${redirected}. ${baseHint(base)}`
}

/** What `baseUrl` should be. Empty if nothing is known to be wrong with it. */
export function baseHint(base: string): string {
  const address = suggestedBase(base)
  if (address === base) return `Check baseUrl: it must be the address of the API, which ends in ${basePath}`
  return `baseUrl must be the address of the API, which ends in ${basePath}: try ${address}`
}

/** Whether the base has the form of the API's own addresses. Behind a proxy it may have another one. */
export function isUsualBase(base: string): boolean {
  return suggestedBase(base) === base
}

/** fetch sends no credentials to another origin. A redirect to one, for example to https, therefore ends in a 401. */
export function lostCredentials(url: string, base: string): string {
  const target = redirectOf(url, base)
  if (target === undefined || originOf(url) === originOf(base)) return ''
  return (
    ` (The request was redirected to ${target}, and credentials are not sent to another origin:` +
    ` make ${originOf(url)}${new URL(base).pathname} the baseUrl.)`
  )
}

/** The address after redirects, without its query; undefined if there was none. */
function redirectOf(url: string, base: string): string | undefined {
  if (url === '' || url.startsWith(`${base}/`)) return undefined
  const { origin, pathname } = new URL(url)
  return origin + pathname
}

function originOf(url: string): string {
  return new URL(url).origin
}

function suggestedBase(base: string): string {
  const { origin, pathname } = new URL(base)
  // What people paste: the address of a resource, of the document, or of another version.
  const prefix = pathname.replace(/\/(api|v\d+|projects|stats|openapi\.json)(\/.*)?$/, '').replace(/\/+$/, '')
  return origin + prefix + basePath
}

function kindOf(text: string): string {
  if (text.trim() === '') return 'no content'
  if (/^\s*</.test(text)) return 'an HTML page'
  return /^\s*[{[]/.test(text) ? 'other JSON' : 'other content'
}
