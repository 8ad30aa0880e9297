/**
 * The form with which a reader sends a request from the reference. `static/try-it.js` sends it, from the browser to the API, with the reader's own key, and keeps the curl line
 * beside it up to date. Key and secret have no `name`, so no form ever puts them into a URL, and they never reach the portal. Pure.
 */
import { type Html, html } from '../html/html.ts'
import { codeBlock } from '../html/parts.ts'
import type { Operation, Parameter } from './openapi.ts'

/** The inputs for key and secret. All forms of the page use them. */
export function credentialsCard(): Html {
  return html`<section class="card with-script" aria-labelledby="credentials">
<h2 id="credentials">Your key</h2>
<p>With it you can send each request from this page.</p>
<div class="cards">
<div><label for="try-key">Key</label><input id="try-key" type="text" autocomplete="off" autocapitalize="off" spellcheck="false" placeholder="pv_live_..."></div>
<div><label for="try-secret">Secret</label><input id="try-secret" type="password" autocomplete="off" spellcheck="false"></div>
</div>
<p class="muted">They go from your browser to the API only. This tab remembers them until you close it, or sign out in it. You have none yet? <a href="/access">Create a key</a>.</p>
</section>`
}

/**
 * The form around the parameters of a request, the curl line, and the frame of the answer, which the script fills. Without scripts the line
 * is an example. A file has only the line, which saves it.
 */
export function tryIt({ id, path, isFile }: Operation, fields: Html, apiUrl: string): Html {
  const options = isFile ? '-sSfO' : '-sS'
  const text = `curl ${options} -H "X-API-Key: $PLEDGEVIEW_KEY" -H "X-API-Secret: $PLEDGEVIEW_SECRET" \\\n  '${apiUrl}${path}'`
  const curl = codeBlock({ id: `${id}-curl`, caption: `${path} with curl`, text })
  if (isFile) return html`${fields}${curl}`
  return html`<form action="/reference#${id}" data-api="${apiUrl}" data-path="${path}" data-id="${id}">
${fields}
<div class="actions with-script"><button type="submit">Send the request</button></div>
</form>
<div class="with-script answer"><div id="${id}-outcome" role="status"></div><div id="${id}-answer" hidden>
${codeBlock({ id: `${id}-body`, caption: 'Body of the answer', text: '' })}
<details><summary></summary><dl class="fields"></dl></details>
</div></div>
${curl}`
}

/** The input for a parameter. `undefined` for a header: only programs send these. */
export function controlOf(id: string, parameter: Parameter): Html | undefined {
  const { name, required, schema = {} } = parameter
  if (parameter.in !== 'query' && parameter.in !== 'path') return undefined
  const attributes = html`class="with-script" id="${id}" name="${name}" data-in="${parameter.in}" aria-describedby="${id}-hint"${required && html` required`}`
  if (!schema.enum) {
    const shown = schema.default ?? schema.example
    return html`<input type="text" ${attributes} autocomplete="off" spellcheck="false"${schema.type === 'integer' && html` inputmode="numeric"`}${shown !== undefined && html` placeholder="${String(shown)}"`}>`
  }
  const standard = schema.default === undefined ? 'not sent' : `${String(schema.default)} (not sent)`
  return html`<select ${attributes}><option value="">${standard}</option>${schema.enum.map(text => html`<option>${String(text)}</option>`)}</select>`
}
