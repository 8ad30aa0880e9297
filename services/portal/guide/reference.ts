/**
 * The reference, made from the OpenAPI document. Nothing of it is written by hand, so it cannot differ. Each request can be
 * tried where it is described (try-it.ts). Pure.
 */
import { type Html, html, prose } from '../html/html.ts'
import { badge, codeBlock } from '../html/parts.ts'
import {
  type Answer,
  addObjects,
  type Document,
  nameOf,
  type Operation,
  operationsOf,
  type Parameter,
  resolved,
  type Schema,
} from './openapi.ts'
import { controlOf, credentialsCard, tryIt } from './try-it.ts'

/** `apiUrl`: the base address that consumers call, with `/api/v1`. */
export function referenceContent({ document, apiUrl }: { document: Document; apiUrl: string }): Html {
  const operations = operationsOf(document)
  // What people ask for first, errors after it.
  const answers = operations
    .flatMap(operation => operation.answers)
    .toSorted((one, other) => Number(one.status) - Number(other.status))
  const names = new Set<string>()
  for (const { schema } of answers) if (schema) addObjects(names, schema, document)
  const objects = [...names]
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
${errorsSection(answers)}
<section aria-labelledby="headers">
<h2 id="headers">Headers of answers</h2>
${fieldList(
  unique(
    answers.flatMap(({ headers }) => headers),
    ({ name }) => name,
  ),
)}
</section>
</article>
</div>`
}

function operationSection(operation: Operation, apiUrl: string): Html {
  const { id, path, summary, description, deprecated, parameters } = operation
  const success = operation.answers.find(({ status }) => status === '200')
  const entries = parameters.map(parameter => parameterEntry(id, parameter))
  return html`<section aria-labelledby="${id}">
<div class="heading"><h2 id="${id}">${summary}</h2>${deprecated && badge('Deprecated', 'warning')}</div>
<p>${badge('GET')} <code>${path}</code></p>
${description && html`<p>${prose(description)}</p>`}
<h3>Parameters</h3>
${tryIt(operation, entries.length === 0 ? html`<p>None.</p>` : fieldList(entries), apiUrl)}
<h3>Answers</h3>
${answerList(operation.answers)}
${success?.schema && html`<p>The body is ${typeOf(success.schema)}.</p>`}
${success?.example !== undefined && codeBlock({ id: `${id}-example`, caption: `Example of an answer: ${path}`, text: JSON.stringify(success.example, null, 2) })}
</section>`
}

/** What happened. The description of an error begins with its status, which stands beside it. */
function answerList(answers: readonly Answer[]): Html {
  return html`<ul>${answers.map(
    ({ status, description }) =>
      html`<li><strong>${status}</strong> ${prose(description.replace(new RegExp(`^${status} `), ''))}</li>`,
  )}</ul>`
}

function parameterEntry(operation: string, parameter: Parameter): Entry {
  const { name, required, schema = {} } = parameter
  const facts = [
    typeOf(schema),
    parameter.in !== 'query' && `in the ${parameter.in}`,
    required && 'required',
    schema.default !== undefined && `default ${String(schema.default)}`,
    rangeOf(schema),
  ]
  const id = `${operation}-${name}`
  return {
    ...{ name, facts: listed(facts), description: parameter.description, ...schema },
    ...{ id, control: controlOf(id, parameter) },
  }
}

// A bound that only says what fits into a number is no news to a reader.
function rangeOf({ minimum, maximum = Number.MAX_SAFE_INTEGER }: Schema): string | undefined {
  if (minimum === undefined) return undefined
  return maximum >= Number.MAX_SAFE_INTEGER ? `at least ${minimum}` : `${minimum} to ${maximum}`
}

function objectSection(name: string, document: Document): Html {
  const schema = document.components.schemas[name] ?? {}
  return html`<section aria-labelledby="object-${name}">
<h3 id="object-${name}">${name}</h3>
${schema.description && html`<p>${prose(schema.description)}</p>`}
${fieldList(fieldsOf(schema, document))}
</section>`
}

/** The fields of an object. Those of an object in it without a name of its own are named after it. */
function fieldsOf({ properties = {} }: Schema, document: Document, before = ''): Entry[] {
  return Object.entries(properties).flatMap(([key, field]) => {
    const name = `${before}${key}`
    const { description } = resolved(field, document)
    return [{ ...field, name, facts: typeOf(field), description }, ...fieldsOf(field, document, `${name}.`)]
  })
}

/** A type for people: `string or null`, `array of Reward`, with links to the objects. */
function typeOf({ $ref, type, format, items, anyOf }: Schema): Html {
  if ($ref !== undefined) return html`<a href="#object-${nameOf($ref)}">${nameOf($ref)}</a>`
  if (anyOf) return listed(unique(anyOf.map(typeOf), String), ' or ')
  if (type === 'array' && items) return html`array of ${typeOf(items)}`
  if (format === 'date-time') return html`timestamp`
  if (format === 'uri') return html`URL`
  return html`${[type ?? 'any'].flat().join(' or ')}`
}

/** What is said of a parameter, a field or a header. */
interface Entry extends Pick<Schema, 'description' | 'enum' | 'example'> {
  name: string
  facts?: Html
  /** The input for it, and the input's id. */
  id?: string
  control?: Html | undefined
}

function fieldList(entries: readonly Entry[]): Html {
  return html`<dl class="fields">${entries.map(fieldEntry)}</dl>`
}

function fieldEntry({ name, facts, description, enum: values, example, id, control }: Entry): Html {
  const title = html`<code>${name}</code>`
  const text = html`${description && html`<p>${prose(description)}</p>`}${
    values && html`<p>One of ${listed(values.map(value => html`<code>${String(value)}</code>`))}.</p>`
  }${example !== undefined && html`<p class="muted">For example <code>${typeof example === 'string' ? example : JSON.stringify(example)}</code></p>`}`
  return html`<div><dt>${control ? html`<label for="${id}">${title}</label>` : title} <span class="muted">${facts}</span></dt><dd>${
    control ? html`<div id="${id}-hint">${text}</div>${control}` : text
  }</dd></div>`
}

function errorsSection(answers: readonly Answer[]): Html {
  const errors = unique(
    answers.filter(({ status }) => Number(status) >= 400),
    ({ description }) => description,
  )
  return html`<section aria-labelledby="errors">
<h2 id="errors">Errors</h2>
<p>Every error has the same shape. Use <code>code</code> in programs; the message is for people. The guide says <a href="/docs#errors">what to do for each</a>.</p>
${codeBlock({ id: 'error-example', caption: 'Example of an error', text: JSON.stringify(errors[0]?.example, null, 2) })}
${answerList(errors)}
</section>`
}

/** The parts that are there, with a separator between them. */
function listed(parts: readonly (Html | string | false | undefined)[], separator = ', '): Html {
  return html`${parts.filter(Boolean).map((part, index) => html`${index > 0 && separator}${part}`)}`
}

function unique<Value>(values: readonly Value[], key: (value: Value) => string): Value[] {
  return [...new Map(values.map(value => [key(value), value])).values()]
}
