/** The OpenAPI document in the form that the reference shows. Pure. */

/** A schema, as far as our document uses JSON Schema. */
export interface Schema {
  $ref?: string
  type?: string | readonly string[]
  description?: string
  format?: string
  enum?: readonly unknown[]
  default?: unknown
  example?: unknown
  minimum?: number
  maximum?: number
  items?: Schema
  anyOf?: readonly Schema[]
  properties?: Record<string, Schema>
}

export interface Parameter {
  name: string
  in: string
  required?: boolean
  description?: string
  schema?: Schema
}

interface Header {
  $ref?: string
  description?: string
  schema?: Schema
}

interface Response {
  $ref?: string
  description?: string
  headers?: Record<string, Header>
  content?: Record<string, { schema?: Schema; example?: unknown }>
}

export interface Document {
  info: { version: string }
  paths: Record<
    string,
    {
      get?: {
        operationId: string
        summary?: string
        description?: string
        deprecated?: boolean
        parameters?: readonly Parameter[]
        responses: Record<string, Response>
      }
    }
  >
  components: {
    schemas: Record<string, Schema>
    headers: Record<string, Header>
    responses: Record<string, Response>
  }
}

/** One request that a reader can send. */
export type Operation = ReturnType<typeof operationsOf>[number]
export type Answer = ReturnType<typeof answerOf>
/** A field of an object. `type` is for people: `string or null`, `array of Reward`. `object`: the schema that it has objects of. */
export type Field = ReturnType<typeof fieldOf>

/** The operations that read something, in the order of the document. Preflights are for browsers, not for people. */
export function operationsOf(document: Document) {
  return Object.entries(document.paths).flatMap(([path, { get }]) => {
    if (get === undefined) return []
    const { operationId: id, summary = id, description, deprecated = false, parameters = [], responses } = get
    const answers = Object.entries(responses).map(([status, response]) =>
      answerOf(status, response, document),
    )
    // A whole copy, which a page cannot show.
    const content = responses['200']?.content
    const isFile = content !== undefined && !('application/json' in content)
    return [{ id, path, summary, description, deprecated, parameters, answers, isFile }]
  })
}

function answerOf(status: string, response: Response, { components }: Document) {
  const { description = '', headers = {}, content } = resolved(response, components.responses)
  return {
    status,
    description,
    headers: Object.entries(headers).map(([name, header]) => {
      const { description = '', schema } = resolved(header, components.headers)
      return { name, description, example: schema?.example }
    }),
    ...content?.['application/json'],
  }
}

/** The fields of an object schema. Those of an object without a name of its own are named after it. */
export function fieldsOf(schema: Schema, document: Document): Field[] {
  const { properties = {} } = resolved(schema, document.components.schemas)
  return Object.entries(properties).flatMap(([name, field]) => {
    const inner = field.properties ? fieldsOf(field, document) : []
    const { description } = resolved(field, document.components.schemas)
    return [
      fieldOf(name, { ...field, ...(description && { description }) }),
      ...inner.map(one => ({ ...one, name: `${name}.${one.name}` })),
    ]
  })
}

function fieldOf(name: string, schema: Schema) {
  const { description, example, enum: values = [], items, anyOf = [] } = schema
  const object = [schema, items, ...anyOf].map(nameOf).find(found => found !== undefined)
  return { name, type: typeOf(schema), description, values: values.map(String), example, object }
}

/** The names of the object schemas that a schema leads to, in the order of reading, each once. */
export function objectsIn(schema: Schema, document: Document, seen: string[] = []): string[] {
  const name = nameOf(schema)
  if (name !== undefined && !seen.includes(name)) {
    seen.push(name)
    objectsIn(resolved(schema, document.components.schemas), document, seen)
  }
  const { items, anyOf = [], properties = {} } = schema
  for (const part of [...(items ? [items] : []), ...anyOf, ...Object.values(properties)])
    objectsIn(part, document, seen)
  return seen
}

/** The type of a schema for people. */
export function typeOf(schema: Schema): string {
  const { type, format, items, anyOf } = schema
  if (schema.$ref !== undefined) return nameOf(schema) ?? ''
  if (anyOf) return [...new Set(anyOf.map(typeOf))].join(' or ')
  if (type === 'array' && items) return `array of ${typeOf(items)}`
  if (format === 'date-time') return 'timestamp'
  if (format === 'uri') return 'URL'
  return [type ?? 'any'].flat().join(' or ')
}

/** What a part of the document refers to, or itself. What stands beside `$ref` stays. */
function resolved<Part extends { $ref?: string }>(part: Part, all: Record<string, Part>): Part {
  const name = nameOf(part)
  if (name === undefined) return part
  const target = all[name]
  if (target === undefined) throw new Error(`The OpenAPI document has no ${part.$ref}`)
  const { $ref: _, ...beside } = part
  return { ...target, ...beside }
}

function nameOf(part: { $ref?: string } | undefined): string | undefined {
  return part?.$ref?.slice(part.$ref.lastIndexOf('/') + 1)
}
