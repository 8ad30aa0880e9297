/**
 * The form of a request. Without scripts it makes the request's curl line. With `static/try-it.js` it also sends it, from the
 * browser to the API, with the reader's own key. Key and secret have no `name`, so no form ever puts them into a URL, and they
 * never reach the portal. Pure.
 */
import { type Html, html } from '../html/html.ts'
import { codeBlock } from '../html/parts.ts'
import type { Operation, Parameter } from './openapi.ts'

/** Values of parameters by name, as the reader typed them. */
export type Values = Readonly<Record<string, string>>

/** The inputs for key and secret. All forms of the page use them. */
export function credentialsCard(): Html {
  return html`<section class="card" aria-labelledby="credentials">
<h2 id="credentials">Your key</h2>
<p class="without-script">Your browser runs no scripts, so this page cannot send requests. It makes the curl line for you: put your key and secret into <code>PLEDGEVIEW_KEY</code> and <code>PLEDGEVIEW_SECRET</code>, and run the line in a shell.</p>
<div class="with-script">
<p>With it you can send each request from this page.</p>
<div class="cards">
<div><label for="try-key">Key</label><input id="try-key" type="text" autocomplete="off" autocapitalize="off" spellcheck="false" placeholder="pv_live_..."></div>
<div><label for="try-secret">Secret</label><input id="try-secret" type="password" autocomplete="off" spellcheck="false"></div>
</div>
<p class="muted">They go from your browser to the API only. They are not stored: this page forgets them when you leave it. You have none yet? <a href="/access">Create a key</a>.</p>
</div>
</section>`
}

/** The form around the parameters of a request, the curl line, and room for the answer. */
export function tryIt(
  { id, path, parameters }: Operation,
  fields: Html,
  apiUrl: string,
  values: Values,
): Html {
  return html`<form method="get" action="/reference#${id}" data-api="${apiUrl}" data-path="${path}" data-id="${id}">
<input type="hidden" name="operation" value="${id}">
${fields}
<div class="actions"><button type="submit" class="with-script">Send the request</button><button type="submit" class="without-script">Show the curl line</button></div>
</form>
${codeBlock({ id: `${id}-curl`, caption: `${path} with curl`, text: curlOf({ apiUrl, path, parameters, values }) })}
<div class="with-script answer"><div id="outcome-of-${id}" role="status"></div><div id="${id}-answer"></div></div>`
}

/** The input for a parameter. `undefined` for a header: only programs send these. */
export function controlOf(operation: string, parameter: Parameter, value = ''): Html | undefined {
  const { name, required, schema = {} } = parameter
  if (parameter.in !== 'query' && parameter.in !== 'path') return undefined
  const id = controlId(operation, parameter)
  const attributes = html`id="${id}" name="${name}" data-in="${parameter.in}" aria-describedby="${id}-hint"${required && html` required`}`
  if (!schema.enum) {
    const shown = schema.default ?? schema.example
    return html`<input type="text" ${attributes} value="${value}" autocomplete="off" spellcheck="false"${schema.type === 'integer' && html` inputmode="numeric"`}${shown !== undefined && html` placeholder="${String(shown)}"`}>`
  }
  const standard = schema.default === undefined ? 'not sent' : `${String(schema.default)} (not sent)`
  return html`<select ${attributes}><option value="">${standard}</option>${schema.enum
    .map(String)
    .map(
      text => html`<option value="${text}"${text === value && html` selected`}>${text}</option>`,
    )}</select>`
}

export function controlId(operation: string, { name }: Parameter): string {
  return `${operation}-${name}`
}

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

/** The address of a request. A path parameter that is not given stays as its name in braces. `static/try-it.js` makes the same. */
function addressOf({ apiUrl, path, parameters, values }: CurlRequest): string {
  let address = path
  const query: string[] = []
  for (const { name, in: place } of parameters) {
    const value = values[name] ?? ''
    if (value === '') continue
    if (place === 'path') address = address.replace(`{${name}}`, () => encoded(value))
    else if (place === 'query') query.push(`${encoded(name)}=${encoded(value)}`)
  }
  return `${apiUrl}${address}${query.length === 0 ? '' : `?${query.join('&')}`}`
}

/** Also encodes the quote that would end the shell's word, and does not fail for half a surrogate pair. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replaceAll("'", '%27')
}
