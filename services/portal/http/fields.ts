/** Fields of forms and of the query, as text. A field that is missing or given twice is empty. */
import type { FastifyRequest } from 'fastify'

/** A field of the form. */
export function fieldOf(request: FastifyRequest, name: string): string {
  return textOf(request.body, name)
}

/** A parameter of the query. */
export function queryOf(request: FastifyRequest, name: string): string {
  return textOf(request.query, name)
}

function textOf(fields: unknown, name: string): string {
  if (typeof fields !== 'object' || fields === null || !Object.hasOwn(fields, name)) return ''
  const value = (fields as Record<string, unknown>)[name]
  return typeof value === 'string' ? value : ''
}

/* Where a person goes after signing in. Pure. */

/**
 * The path, if it is one of this portal; otherwise `undefined`. A link to the sign-in page must not lead people to another
 * site. A browser reads `\` as `/` and drops tabs and line ends, so `/\x` and `/<tab>/x` would be other hosts.
 */
export function ownPath(text: unknown): string | undefined {
  if (typeof text !== 'string' || text.length > lengthMax || !pathPattern.test(text)) return undefined
  const url = new URL(text, base)
  // The resolved path is what a browser gets. `/.//x` resolves to `//x`, which would be another host.
  const path = `${url.pathname}${url.search}`
  return url.origin === base && !path.startsWith('//') ? path : undefined
}

const lengthMax = 1_024
const base = 'http://portal.invalid'
// Printable ASCII without the backslash: what a browser sends as a path, which begins with one slash.
const pathPattern = /^\/(?!\/)[!-[\]-~]*$/
