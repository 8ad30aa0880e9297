/**
 * The latest requests of keys, in memory until they are written. An extra for people: what does not fit is left out.
 *
 * A row has the pattern of the route and parameters with fixed values. It has no address and no text as the client sent it, because
 * any of these may hold a secret in the wrong place.
 */
import { formatListQuery, type ListParameters } from '../../../contracts/api/parameters.ts'
import { encodeRows } from '../../tables/clickhouse/row-binary.ts'
import type { Databases, TableInsert } from '../../tables/port.ts'
import type { AnsweredRequest } from '../http/request-log.ts'

// Of a key, in one minute: as many as its limit admits.
const perMinuteMax = 120
const waitingMax = 5_000

const columns = [
  { name: 'api_key', type: 'String' },
  { name: 'at', type: "DateTime64(3, 'UTC')" },
  { name: 'request_id', type: 'String' },
  { name: 'path', type: 'LowCardinality(String)' },
  { name: 'status', type: 'UInt16' },
  { name: 'ms', type: 'UInt32' },
]

export function createLatestRequests({ base }: Databases, now: () => number) {
  const waiting: (string | number)[][] = []
  return {
    /** `nth`: how many answers its key has had in this minute. */
    add(key: string, request: AnsweredRequest, nth: number, elapsedMs: number): void {
      if (nth > perMinuteMax || waiting.length >= waitingMax) return
      const { id, route, status, parameters } = request
      waiting.push([key, now(), id, shownPath(route, parameters), status, Math.round(elapsedMs)])
    },

    /** Writes what waits. What fails waits on, and a repeated write changes nothing. */
    async write(insert: (rows: TableInsert) => Promise<void>): Promise<void> {
      const rows = waiting.slice()
      if (rows.length === 0) return
      await insert({ table: `${base}.api_key_requests`, columns, rows: encodeRows(columns, rows) })
      waiting.splice(0, rows.length)
    },
  }
}

/** `/projects?limit=2&category`: a category is the client's own text, as a slug is, so only its name is here. */
function shownPath(route: string, parameters: object | null): string {
  if (parameters === null || !('sort' in parameters)) return route
  const { category, ...rest } = parameters as ListParameters
  const query = [formatListQuery({ ...rest, category: null }), category === null ? '' : 'category']
  const text = query.filter(part => part !== '').join('&')
  return text === '' ? route : `${route}?${text}`
}
