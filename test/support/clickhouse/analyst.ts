/** Queries over HTTP as the data teams' user does. It has no password unless the operator sets one. */
import { analystUser } from '../../../services/clickhouse-server/configuration.ts'

export interface AnalystRequest {
  /** Additional URL parameters: settings, or how to read an external table. */
  parameters?: Record<string, string | number>
  /** The bytes of an external table `sent`. */
  table?: string
  /** Default: the data teams' user of the child server. */
  user?: string
  /** Stops waiting. The status is 0 then, and for an answer that ends early. */
  msMax?: number
}

/** The answer, with any status. */
export async function askAsAnalyst(
  url: string,
  query: string,
  { parameters = {}, table, user = analystUser, msMax }: AnalystRequest = {},
) {
  const search = new URLSearchParams({ user })
  for (const [name, value] of Object.entries(parameters)) search.set(name, String(value))
  let body: string | FormData = query
  if (table !== undefined) {
    search.set('query', query)
    body = new FormData()
    body.set('sent', new Blob([table]), 'sent')
  }
  const signal = msMax === undefined ? null : AbortSignal.timeout(msMax)
  try {
    const response = await fetch(`${url}/?${search}`, { method: 'POST', body, signal })
    return { status: response.status, text: await response.text(), headers: response.headers }
  } catch (error) {
    if (signal?.aborted) return { status: 0, text: 'no answer in time', headers: new Headers() }
    // An error after the first rows ends the answer there.
    if (error instanceof TypeError && error.message === 'terminated')
      return { status: 0, text: 'the answer ended early', headers: new Headers() }
    throw error
  }
}

/** Ways to set a setting that may avoid the checks on the whole query's settings. */
export const waysToSet: readonly [name: string, set: (select: string, setting: string) => string][] = [
  ['on the query', (select, setting) => `${select} SETTINGS ${setting}`],
  ['on a subquery', (select, setting) => `SELECT * FROM (${select} SETTINGS ${setting})`],
  ['on a scalar subquery', (select, setting) => `SELECT (${select} LIMIT 1 SETTINGS ${setting})`],
  [
    'on a common table expression',
    (select, setting) => `WITH own AS (${select} SETTINGS ${setting}) SELECT * FROM own`,
  ],
  ['in the function view', (select, setting) => `SELECT * FROM view(${select} SETTINGS ${setting})`],
  ['on a part of a union', (select, setting) => `${select} SETTINGS ${setting} UNION ALL ${select}`],
]
