/**
 * The reference, made from the OpenAPI document. Nothing of it is written by hand, so it cannot differ. Each request can be
 * tried where it is described (try-it.ts). Pure.
 */
import { type Html, html, prose } from '../html/html.ts'
import { badge, codeBlock } from '../html/parts.ts'
import {
  type Answer,
  type Document,
  type Field,
  fieldsOf,
  type Operation,
  objectsIn,
  operationsOf,
  type Parameter,
  typeOf,
} from './openapi.ts'
import { controlId, controlOf, credentialsCard, tryIt } from './try-it.ts'

/** `apiUrl`: the base address that consumers call, with `/api/v1`. */
export function referenceContent({ document, apiUrl }: { document: Document; apiUrl: string }): Html {
  const operations = operationsOf(document)
  const objects = objectNames(operations, document)
  return html`<div class="guide">
<aside class="contents"><nav aria-label="On this page">
<p>Requests</p>
<ul>${operations.map(({ id, path }) => html`<li><a href="#${id}">GET ${path}</a></li>`)}</ul>
<p>Objects</p>
<ul>${objects.map(name => html`<li><a href="#object-${name}">${name}</a></li>`)}</ul>
<p>More</p>
<ul><li><a href="#errors">Errors</a></li><li><a href="#headers">Headers</a></li></ul>
</nav></aside>
<article>
<h1>Reference</h1>
<p class="lead">Every request, parameter and field. This page is made from the <a href="/openapi.json">OpenAPI document</a>, version ${document.info.version}.</p>
<dl class="facts"><div><dt>Base address</dt><dd><code>${apiUrl}</code></dd></div></dl>
<p>Every request needs a key and a secret, in the headers <code>X-API-Key</code> and <code>X-API-Secret</code>, or as <code>Authorization: Bearer KEY:SECRET</code>. The <a href="/docs#first-call">guide</a> shows a first call.</p>
${credentialsCard()}
${operations.map(operation => operationSection(operation, apiUrl))}
<h2 id="objects">Objects</h2>
<p>Every field is always present. New fields may be added at any time, so ignore fields that you do not know.</p>
${objects.map(name => objectSection(name, document))}
${errorsSection(operations)}
${headersSection(operations)}
</article>
</div>`
}

function operationSection(operation: Operation, apiUrl: string): Html {
  const { id, path, summary, description, deprecated, parameters } = operation
  const success = operation.answers.find(({ status }) => status === '200')
  return html`<section aria-labelledby="${id}">
<div class="heading"><h2 id="${id}">${summary}</h2>${deprecated && badge('Deprecated', 'warning')}</div>
<p>${badge('GET')} <code>${path}</code></p>
${description && html`<p>${prose(description)}</p>`}
<h3>Parameters</h3>
${tryIt(
  operation,
  parameters.length === 0
    ? html`<p>None.</p>`
    : fieldList(parameters.map(parameter => parameterEntry(id, parameter))),
  apiUrl,
)}
<h3>Answers</h3>
<ul>${operation.answers.map(answer => html`<li><strong>${answer.status}</strong> ${answerLine(answer)}</li>`)}</ul>
${success?.schema && html`<p>The body is ${objectLink(typeOf(success.schema), typeOf(success.schema))}.</p>`}
${success?.example !== undefined && codeBlock({ id: `${id}-example`, caption: `Example of an answer: ${path}`, text: JSON.stringify(success.example, null, 2) })}
</section>`
}

/** An error's answer: what happened, without the status and the code that stand beside it. */
function answerLine({ status, description }: Answer): Html {
  return prose(description.startsWith(`${status} `) ? description.slice(status.length + 1) : description)
}

function parameterEntry(operation: string, parameter: Parameter): Html {
  const { name, required, description, schema = {} } = parameter
  const place = parameter.in === 'query' ? '' : `in the ${parameter.in}`
  const facts = [
    typeOf(schema),
    place,
    required ? 'required' : '',
    schema.default === undefined ? '' : `default ${String(schema.default)}`,
    rangeOf(schema.minimum, schema.maximum),
  ]
  return fieldEntry({
    name,
    facts: facts.filter(fact => fact !== '').join(', '),
    description: schema.description ?? description,
    values: (schema.enum ?? []).map(String),
    example: schema.example,
    id: controlId(operation, parameter),
    control: controlOf(operation, parameter),
  })
}

// A bound that only says what fits into a number is no news to a reader.
function rangeOf(minimum: number | undefined, maximum: number | undefined): string {
  if (minimum === undefined) return ''
  return maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER
    ? `at least ${minimum}`
    : `${minimum} to ${maximum}`
}

function objectSection(name: string, document: Document): Html {
  const schema = document.components.schemas[name] ?? {}
  return html`<section aria-labelledby="object-${name}">
<h3 id="object-${name}">${name}</h3>
${schema.description && html`<p>${prose(schema.description)}</p>`}
${fieldList(fieldsOf(schema, document).map(objectField))}
</section>`
}

function objectField({ type, object, ...field }: Field): Html {
  return fieldEntry({ ...field, facts: objectLink(type, object) })
}

/** A type, with a link to the object that it names. */
function objectLink(type: string, object: string | undefined): Html {
  const at = object === undefined ? -1 : type.indexOf(object)
  if (object === undefined || at < 0) return html`${type}`
  return html`${type.slice(0, at)}<a href="#object-${object}">${object}</a>${type.slice(at + object.length)}`
}

interface Entry {
  name: string
  facts: Html | string
  description: string | undefined
  values: readonly string[]
  example: unknown
  /** The input for it, and the input's id. */
  id?: string
  control?: Html | undefined
}

function fieldEntry(entry: Entry): Html {
  const { name, facts, id, control } = entry
  const title = html`<code>${name}</code>`
  return html`<div><dt>${control ? html`<label for="${id}">${title}</label>` : title} <span class="muted">${facts}</span></dt><dd>${
    control ? html`<div id="${id}-hint">${entryText(entry)}</div>${control}` : entryText(entry)
  }</dd></div>`
}

function entryText({ description, values, example }: Entry): Html {
  return html`${description && html`<p>${prose(description)}</p>`}${
    values.length > 0 &&
    html`<p>One of ${values.map((value, index) => html`${index > 0 && ', '}<code>${value}</code>`)}.</p>`
  }${example !== undefined && html`<p class="muted">For example <code>${typeof example === 'string' ? example : JSON.stringify(example)}</code></p>`}`
}

function fieldList(entries: readonly Html[]): Html {
  return html`<dl class="fields">${entries}</dl>`
}

function errorsSection(operations: readonly Operation[]): Html {
  const answers = unique(
    answersOf(operations).filter(({ status }) => Number(status) >= 400),
    answer => answer.description,
  )
  return html`<section aria-labelledby="errors">
<h2 id="errors">Errors</h2>
<p>Every error has the same shape. Use <code>code</code> in programs; the message is for people. The guide says <a href="/docs#errors">what to do for each</a>.</p>
${codeBlock({ id: 'error-example', caption: 'Example of an error', text: JSON.stringify(answers[0]?.example, null, 2) })}
<ul>${answers.map(answer => html`<li><strong>${answer.status}</strong> ${answerLine(answer)}</li>`)}</ul>
</section>`
}

function headersSection(operations: readonly Operation[]): Html {
  const headers = unique(
    answersOf(operations).flatMap(answer => answer.headers),
    header => header.name,
  )
  return html`<section aria-labelledby="headers">
<h2 id="headers">Headers of answers</h2>
${fieldList(
  headers.map(({ name, description, example }) =>
    fieldEntry({ name, facts: '', description, values: [], example }),
  ),
)}
</section>`
}

function objectNames(operations: readonly Operation[], document: Document): string[] {
  const seen: string[] = []
  // What people ask for first, errors after it.
  for (const { schema } of answersOf(operations)) if (schema) objectsIn(schema, document, seen)
  return seen
}

function answersOf(operations: readonly Operation[]): Answer[] {
  const answers = operations.flatMap(operation => operation.answers)
  return answers.toSorted((one, other) => Number(one.status) - Number(other.status))
}

function unique<Value>(values: readonly Value[], key: (value: Value) => string): Value[] {
  return [...new Map(values.map(value => [key(value), value])).values()]
}
