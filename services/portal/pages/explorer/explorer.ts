/**
 * The explorer: a form for every request of the OpenAPI document. Without scripts it makes the curl line of a request. With
 * `static/explorer.js` it also sends it, from the browser to the API, with the reader's own key. Key and secret have no
 * `name`, so no form ever puts them into a URL, and they never reach the portal. Pure.
 */
import { type Html, html } from '../../html/html.ts'
import { codeBlock } from '../../html/parts.ts'
import { prose } from '../../html/prose.ts'
import { type Document, type Operation, operationsOf, type Parameter } from '../reference/document.ts'
import { curlOf, type Values } from './curl.ts'

export interface ExplorerData {
  document: Document
  /** The base address that consumers call, with `/api/v1`. */
  apiUrl: string
  /** What the reader has chosen: the id of an operation, and values of its parameters. */
  chosen: { operation: string | undefined; values: Values }
}

export function explorerContent({ document, apiUrl, chosen }: ExplorerData): Html {
  const operations = operationsOf(document)
  const open = operations.find(({ id }) => id === chosen.operation) ?? operations[0]
  return html`<h1>Explorer</h1>
<p class="lead">Choose a request, fill in what you need, and see the answer.</p>
<section class="card" aria-labelledby="credentials">
<h2 id="credentials">Your key</h2>
<p class="without-script">Your browser runs no scripts, so this page cannot send requests. It makes the curl line for you: put your key and secret into <code>PLEDGEVIEW_KEY</code> and <code>PLEDGEVIEW_SECRET</code>, and run the line in a shell.</p>
<div class="with-script">
<div class="columns">
<div><label for="explorer-key">Key</label><input id="explorer-key" type="text" autocomplete="off" autocapitalize="off" spellcheck="false" placeholder="pv_live_..."></div>
<div><label for="explorer-secret">Secret</label><input id="explorer-secret" type="password" autocomplete="off" spellcheck="false"></div>
</div>
<p class="muted">They go from your browser to the API only. They are not stored: this page forgets them when you leave it. You have none yet? <a href="/access">Create a key</a>.</p>
</div>
</section>
<h2>Requests</h2>
${operations.map(operation =>
  operationForm({
    operation,
    apiUrl,
    isOpen: operation === open,
    values: operation === open ? chosen.values : {},
  }),
)}`
}

interface FormData {
  operation: Operation
  apiUrl: string
  isOpen: boolean
  values: Values
}

function operationForm({ operation, apiUrl, isOpen, values }: FormData): Html {
  const { id, path, summary, parameters } = operation
  const asked = parameters.filter(isAsked)
  return html`<details class="card" name="operation"${isOpen && html` open`}>
<summary><span class="method">GET</span> <code>${path}</code> ${summary}</summary>
<form method="get" action="/explorer" data-api="${apiUrl}" data-path="${path}" data-id="${id}">
<input type="hidden" name="operation" value="${id}">
${asked.length === 0 ? html`<p>This request has no parameters.</p>` : html`<div class="columns">${asked.map(parameter => field(id, parameter, values[parameter.name]))}</div>`}
<div class="actions"><button type="submit" class="with-script">Send the request</button><button type="submit" class="without-script">Show the curl line</button><a href="/reference#${id}">Reference</a></div>
</form>
${codeBlock({ id: `${id}-curl`, caption: 'The same with curl', text: curlOf({ apiUrl, path, parameters: asked, values }) })}
<div class="with-script explorer-answer"><div id="outcome-of-${id}" role="status"></div><div id="${id}-answer"></div></div>
</details>`
}

/** What a reader fills in. Headers are for programs. */
function isAsked(parameter: Parameter): boolean {
  return parameter.in === 'query' || parameter.in === 'path'
}

function field(operation: string, parameter: Parameter, value = ''): Html {
  const { name, required, schema = {} } = parameter
  const id = `${operation}-${name}`
  const described = html`<small class="hint" id="${id}-hint">${prose(schema.description ?? parameter.description)}</small>`
  const attributes = html`id="${id}" name="${name}" data-in="${parameter.in}" aria-describedby="${id}-hint"${required && html` required`}`
  const standard = schema.default === undefined ? 'not sent' : `${String(schema.default)} (not sent)`
  const control = schema.enum
    ? html`<select ${attributes}><option value="">${standard}</option>${schema.enum.map(option => {
        const text = String(option)
        return html`<option value="${text}"${text === value && html` selected`}>${text}</option>`
      })}</select>`
    : html`<input type="text" ${attributes} value="${value}" autocomplete="off" spellcheck="false"${schema.type === 'integer' && html` inputmode="numeric"`}${placeholderOf(parameter)}>`
  return html`<div><label for="${id}">${name}${required && html` <span class="muted">(required)</span>`}</label>${control}${described}</div>`
}

function placeholderOf({ schema = {} }: Parameter): Html | undefined {
  const text = schema.default ?? schema.example
  return text === undefined ? undefined : html` placeholder="${String(text)}"`
}
