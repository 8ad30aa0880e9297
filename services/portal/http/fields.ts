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

/** A field of a body or a query. */
export function textOf(fields: unknown, name: string): string {
  if (typeof fields !== 'object' || fields === null || !Object.hasOwn(fields, name)) return ''
  const value = (fields as Record<string, unknown>)[name]
  return typeof value === 'string' ? value : ''
}
