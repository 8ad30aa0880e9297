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
  examples?: readonly unknown[]
  minimum?: number
  maximum?: number
  items?: Schema
  anyOf?: readonly Schema[]
  allOf?: readonly Schema[]
  properties?: Record<string, Schema>
  required?: readonly string[]
}

interface Reference {
  $ref?: string
}

export interface Parameter {
  name: string
  in: string
  required?: boolean
  description?: string
  deprecated?: boolean
  schema?: Schema
}

interface Header extends Reference {
  description?: string
  schema?: Schema
}

interface Response extends Reference {
  description?: string
  headers?: Record<string, Header>
  content?: Record<string, { schema?: Schema; example?: unknown }>
}

interface PathOperation {
  operationId: string
  summary?: string
  description?: string
  deprecated?: boolean
  parameters?: readonly Parameter[]
  responses: Record<string, Response>
}

export interface Document {
  info: { title: string; version: string; description?: string }
  paths: Record<string, { get?: PathOperation }>
  components: {
    schemas: Record<string, Schema>
    headers: Record<string, Header>
    responses: Record<string, Response>
  }
}

/** One request that a reader can send. */
export interface Operation {
  id: string
  path: string
  summary: string
  description: string | undefined
  deprecated: boolean
  parameters: readonly Parameter[]
  answers: readonly Answer[]
}

export interface Answer {
  status: string
  description: string
  headers: readonly { name: string; description: string; example: unknown }[]
  schema: Schema | undefined
  example: unknown
}

/** A field of an object, with the fields of the objects in it. */
export interface Field {
  name: string
  /** For people: `string or null`, `array of Reward`. */
  type: string
  description: string | undefined
  /** The values that are allowed, or nothing. */
  values: readonly string[]
  example: unknown
  /** The name of the object's schema, if the field has objects of one. */
  object: string | undefined
}

/** The operations that read something, in the order of the document. Preflights are for browsers, not for people. */
export function operationsOf(document: Document): Operation[] {
  return Object.entries(document.paths).flatMap(([path, { get }]) =>
    get === undefined
      ? []
      : [
          {
            id: get.operationId,
            path,
            summary: get.summary ?? get.operationId,
            description: get.description,
            deprecated: get.deprecated === true,
            parameters: get.parameters ?? [],
            answers: Object.entries(get.responses).map(([status, response]) =>
              answerOf(status, response, document),
            ),
          },
        ],
  )
}

/** The fields of an object schema. Fields of `allOf` are its own. */
export function fieldsOf(schema: Schema, document: Document): Field[] {
  const resolved = resolve(schema, document)
  const own = Object.entries(resolved.properties ?? {}).flatMap(([name, field]) => [
    fieldOf(name, field, document),
    // An object without a name of its own: its fields are named after it.
    ...(field.properties ? fieldsOf(field, document) : []).map(inner => ({
      ...inner,
      name: `${name}.${inner.name}`,
    })),
  ])
  return [...(resolved.allOf ?? []).flatMap(part => fieldsOf(part, document)), ...own]
}

/** The names of the object schemas that a schema leads to, in the order of reading, each once. */
export function objectsIn(schema: Schema, document: Document, seen: string[] = []): string[] {
  for (const part of [schema, schema.items, ...(schema.anyOf ?? []), ...(schema.allOf ?? [])]) {
    const name = nameOf(part)
    if (name !== undefined && !seen.includes(name)) {
      seen.push(name)
      objectsIn(resolve(part ?? {}, document), document, seen)
    }
  }
  for (const field of Object.values(schema.properties ?? {})) objectsIn(field, document, seen)
  if (schema.items && nameOf(schema.items) === undefined) objectsIn(schema.items, document, seen)
  return seen
}

/** The type of a schema for people. */
export function typeOf(schema: Schema, document: Document): string {
  const name = nameOf(schema)
  if (name !== undefined) return name
  if (schema.anyOf) return [...new Set(schema.anyOf.map(part => typeOf(part, document)))].join(' or ')
  if (schema.type === 'array' && schema.items) return `array of ${typeOf(schema.items, document)}`
  if (schema.format === 'date-time') return 'timestamp'
  if (schema.format === 'uri') return 'URL'
  if (typeof schema.type === 'string') return schema.type
  if (schema.type) return schema.type.join(' or ')
  return schema.allOf?.[0] ? typeOf(schema.allOf[0], document) : 'any'
}

/** The schema that a schema refers to, or itself. Descriptions beside `$ref` stay. */
export function resolve(schema: Schema, document: Document): Schema {
  const name = nameOf(schema)
  if (name === undefined) return schema
  const target = document.components.schemas[name]
  if (target === undefined) throw new Error(`The OpenAPI document has no schema ${name}`)
  return { ...target, ...(schema.description !== undefined && { description: schema.description }) }
}

function fieldOf(name: string, schema: Schema, document: Document): Field {
  const alternatives = [schema, ...(schema.anyOf ?? []), ...(schema.allOf ?? [])]
  const first = <Value>(of: (schema: Schema) => Value | undefined) =>
    alternatives.map(of).find(value => value !== undefined)
  return {
    name,
    type: typeOf(schema, document),
    description: first(part => part.description) ?? first(part => resolve(part, document).description),
    values: (first(part => part.enum) ?? []).map(String),
    example: first(part => part.example ?? part.examples?.[0]),
    object: first(part => nameOf(part) ?? nameOf(part.items)),
  }
}

function answerOf(status: string, response: Response, document: Document): Answer {
  const { responses, headers } = document.components
  const found = response.$ref === undefined ? response : responses[lastOf(response.$ref)]
  if (found === undefined) throw new Error(`The OpenAPI document has no response ${response.$ref}`)
  const content = found.content?.['application/json']
  return {
    status,
    description: found.description ?? '',
    headers: Object.entries(found.headers ?? {}).map(([name, header]) => {
      const known = header.$ref === undefined ? header : headers[lastOf(header.$ref)]
      return { name, description: known?.description ?? '', example: known?.schema?.example }
    }),
    schema: content?.schema,
    example: content?.example,
  }
}

function nameOf(schema: Schema | undefined): string | undefined {
  return schema?.$ref === undefined ? undefined : lastOf(schema.$ref)
}

function lastOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1)
}
