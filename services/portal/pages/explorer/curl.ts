/** The curl line of a request. `static/explorer.js` makes the same line while a reader types. Pure. */
import type { Parameter } from '../reference/document.ts'

/** Values of parameters by name, as the reader typed them. */
export type Values = Readonly<Record<string, string>>

export interface CurlRequest {
  apiUrl: string
  path: string
  parameters: readonly Parameter[]
  values: Values
}

/** A line for a shell. The credentials come from the environment, so they are not in the shell's history. */
export function curlOf(request: CurlRequest): string {
  return `curl -sS -H "X-API-Key: $PLEDGEVIEW_KEY" -H "X-API-Secret: $PLEDGEVIEW_SECRET" \\\n  '${addressOf(request)}'`
}

/** The address of a request. A path parameter that is not given stays as its name in braces. */
export function addressOf({ apiUrl, path, parameters, values }: CurlRequest): string {
  let address = path
  const query: string[] = []
  for (const { name, in: place } of parameters) {
    const value = values[name] ?? ''
    if (value === '') continue
    if (place === 'path') address = address.replace(`{${name}}`, () => encoded(value))
    else query.push(`${encoded(name)}=${encoded(value)}`)
  }
  return `${apiUrl}${address}${query.length === 0 ? '' : `?${query.join('&')}`}`
}

/** Also encodes the quote that would end the shell's word, and does not fail for half a surrogate pair. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replaceAll("'", '%27')
}
