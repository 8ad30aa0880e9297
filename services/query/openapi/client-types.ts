/**
 * The clients' types of the bodies (contracts/api/client/bodies.ts, and a part of contracts/api/client-python/pledgeview.py), from the
 * OpenAPI document. Pure.
 *
 * The types of the schemas are made by zod. The packages of the clients do not have it, so they need types that stand
 * alone. Editors show the descriptions of the document beside each field.
 */

import { isDeepStrictEqual } from 'node:util'

const lineLengthMax = 110
const head =
  '/** The bodies of the API. Generated from the OpenAPI document: do not edit, run "npm run contracts". */\n'

/** A schema of the document, as far as the bodies use it. */
export interface Schema {
  $ref?: string
  type?: string | string[]
  enum?: readonly string[]
  anyOf?: readonly Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: readonly string[]
  description?: string
}

/** The text of a TypeScript module with an interface for each of these schemas and those that they refer to. */
export function clientTypesText(schemas: Readonly<Record<string, Schema>>, names: readonly string[]): string {
  return [head, ...textsOf(schemas, names, interfaceText)].join('\n')
}

/** The same in Python, as a part of a module. */
export function pythonTypesText(schemas: Readonly<Record<string, Schema>>, names: readonly string[]): string {
  return textsOf(schemas, names, typedDictText).join('\n\n')
}

/** A type with the fields that it does not have from its base. */
interface Body {
  name: string
  base: string | undefined
  own: Schema
}
/** In the order of their names. */
function textsOf(
  schemas: Readonly<Record<string, Schema>>,
  names: readonly string[],
  write: (body: Body) => string,
): string[] {
  const pending = [...names]
  const texts = new Map<string, string>()
  for (const name of pending) {
    const schema = schemas[name]
    if (schema === undefined) throw new Error(`the OpenAPI document has no schema ${name}`)
    if (texts.has(name)) continue
    const base = Object.keys(schemas).find(other => isPart(schemas[other], schema))
    if (base !== undefined) pending.push(base)
    const own = base === undefined ? schema : without(schema, schemas[base])
    for (const [, referred = ''] of JSON.stringify(own).matchAll(reference)) pending.push(referred)
    texts.set(name, write({ name, base, own }))
  }
  return [...texts].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, text]) => text)
}

const reference = /#\/components\/schemas\/(\w+)/g

/** Whether the whole has each field of the part, with the same description, and more. */
function isPart(part: Schema | undefined, whole: Schema): boolean {
  const fields = Object.entries(part?.properties ?? {})
  const rest = Object.keys(whole.properties ?? {}).length - fields.length
  const isSame = ([name, value]: [string, Schema]) => isDeepStrictEqual(value, whole.properties?.[name])
  return fields.length > 0 && rest > 0 && fields.every(isSame)
}

function without(whole: Schema, part: Schema | undefined): Schema {
  const own = Object.entries(whole.properties ?? {}).filter(([name]) => !part?.properties?.[name])
  return { ...whole, properties: Object.fromEntries(own) }
}

function interfaceText({ name, base, own }: Body): string {
  const fields = Object.entries(own.properties ?? {}).map(([field, value]) => {
    const mark = own.required?.includes(field) ? '' : '?'
    return `${commentText(value.description, '  ')}  ${field}${mark}: ${typeText(value, `${name}.${field}`)}\n`
  })
  return `${commentText(own.description, '')}export interface ${name}${base === undefined ? '' : ` extends ${base}`} {\n${fields.join('')}}\n`
}

function typedDictText({ name, base, own }: Body): string {
  const fields = Object.entries(own.properties ?? {}).map(
    ([field, value]) => `    ${field}: ${pythonType(typeText(value, `${name}.${field}`, 'int'))}\n`,
  )
  return `class ${name}(${base ?? 'TypedDict'}):\n    """${own.description}"""\n\n${fields.join('')}`
}

const pythonNames: Record<string, string> = { string: 'str', number: 'float', boolean: 'bool', null: 'None' }

function pythonType(type: string): string {
  if (type.endsWith('[]')) return `List[${pythonType(type.slice(0, -2).replace(/^\((.*)\)$/, '$1'))}]`
  const parts = type
    .split(' | ')
    .map(part => (part.startsWith("'") ? `Literal[${part}]` : (pythonNames[part] ?? part)))
  return parts.join(' | ').replaceAll('] | Literal[', ', ')
}

function typeText(schema: Schema, place: string, integer = 'number'): string {
  if (schema.$ref !== undefined) return schema.$ref.replace(reference, '$1')
  if (schema.anyOf) return schema.anyOf.map(part => typeText(part, place, integer)).join(' | ')
  if (schema.enum) return schema.enum.map(value => `'${value}'`).join(' | ')
  if (Array.isArray(schema.type)) {
    return schema.type.map(type => typeText({ ...schema, type }, place, integer)).join(' | ')
  }
  const { type = '', items = {} } = schema
  if (type === 'integer') return integer
  if (['string', 'number', 'boolean', 'null'].includes(type)) return type
  if (type !== 'array') throw new Error(`${place}: no type is known for ${JSON.stringify(schema)}`)
  const each = typeText(items, place, integer)
  return each.includes(' ') ? `(${each})[]` : `${each}[]`
}

function commentText(description: string | undefined, indent: string): string {
  if (description === undefined) return ''
  // A text of the document must not end the comment.
  const safe = description.replaceAll('*/', '* /')
  const single = `${indent}/** ${safe} */`
  if (single.length <= lineLengthMax && !safe.includes('\n')) return `${single}\n`
  // As many words as fit in a line, or one that fits in none.
  const words = new RegExp(`\\S.{0,${lineLengthMax - indent.length - 4}}(?=\\s|$)|\\S+`, 'g')
  const lines = safe.replace(/\s+/g, ' ').match(words) ?? []
  return `${indent}/**\n${lines.map(line => `${indent} * ${line}\n`).join('')}${indent} */\n`
}
