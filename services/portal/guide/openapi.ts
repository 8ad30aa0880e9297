/** The OpenAPI document in the form that the reference shows. Pure. */

/** A part of the document, or a reference to it. */
interface Part {
  $ref?: string
  description?: string | undefined
}

/** A schema, as far as our document uses JSON Schema. */
export interface Schema extends Part {
  type?: string | readonly string[]
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

export interface Parameter extends Part {
  name: string
  in: string
  required?: boolean
  schema?: Schema
}

interface Header extends Part {
  schema?: Schema
}

interface Response extends Part {
  headers?: Record<string, Header>
  content?: Record<string, { schema?: Schema; example?: unknown }>
}

interface Get {
  operationId: string
  summary?: string
  description?: string
  deprecated?: boolean
  parameters?: readonly Parameter[]
  responses: Record<string, Response>
}

export interface Document {
  info: { version: string }
  paths: Record<string, { get?: Get }>
  components: {
    schemas: Record<string, Schema>
    headers: Record<string, Header>
    responses: Record<string, Response>
  }
}

/** One request that a reader can send. */
export type Operation = ReturnType<typeof operationsOf>[number]
export type Answer = Operation['answers'][number]

/** The operations that read something, in the order of the document. Preflights are for browsers, not for people. */
export function operationsOf(document: Document) {
  return Object.entries(document.paths).flatMap(([path, { get }]) => {
    if (get === undefined) return []
    const { operationId: id, summary = id, description, deprecated, parameters = [], responses } = get
    const answers = Object.entries(responses).map(([status, response]) => {
      const { description = '', headers = {}, content } = resolved(response, document)
      const named = Object.entries(headers).map(([name, header]) => {
        const { description, schema } = resolved(header, document)
        return { name, description, example: schema?.example }
      })
      return { status, description, headers: named, ...content?.['application/json'] }
    })
    // A whole copy, which a page cannot show.
    const content = responses['200']?.content
    const isFile = content !== undefined && !('application/json' in content)
    return [{ id, path, summary, description, deprecated, parameters, answers, isFile }]
  })
}

/** Adds the names of the objects that a schema leads to, in the order of reading. */
export function addObjects(names: Set<string>, schema: Schema, document: Document): void {
  const { $ref, items = [], anyOf = [], properties = {} } = schema
  if ($ref !== undefined) {
    if (names.has(nameOf($ref))) return
    names.add(nameOf($ref))
    addObjects(names, resolved(schema, document), document)
  }
  for (const part of [items, anyOf, Object.values(properties)].flat()) addObjects(names, part, document)
}

/** What a part of the document refers to, or itself. What stands beside `$ref` stays. */
export function resolved<Any extends Part>(part: Any, { components }: Document): Any {
  const { $ref, ...beside } = part
  if ($ref === undefined) return part
  const [kind, name] = $ref.split('/').slice(-2) as [keyof typeof components, string]
  const target = components[kind]?.[name]
  if (target === undefined) throw new Error(`The OpenAPI document has no ${$ref}`)
  return { ...(target as Any), ...beside }
}

/** The name of the object that is referred to. */
export function nameOf($ref: string): string {
  return $ref.slice($ref.lastIndexOf('/') + 1)
}
