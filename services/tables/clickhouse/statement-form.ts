/**
 * A statement with long parameters as a form. The client normally puts parameters into the URL, and proxies refuse
 * long URLs. Pure.
 *
 * Source: ClickHouse documentation, "HTTP interface", "Queries with parameters" (also as `multipart/form-data`).
 */

export interface StatementForm {
  body: string
  contentType: string
}

/** `boundary` must not occur in any value: use a random one for each statement. */
export function statementForm(
  query: string,
  parameters: Readonly<Record<string, unknown>>,
  boundary: string,
): StatementForm {
  const fields = [
    ['query', query] as const,
    ...Object.entries(parameters).map(([name, value]) => [`param_${name}`, parameterText(value)] as const),
  ]
  const parts = fields.map(
    ([name, text]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`,
  )
  return {
    body: `${parts.join('')}--${boundary}--\r\n`,
    contentType: `multipart/form-data; boundary=${boundary}`,
  }
}

/** A value in ClickHouse's escaped text form. Throws a `TypeError` if it cannot be a parameter. */
export function parameterText(value: unknown): string {
  if (value === null) return '\\N'
  return typeof value === 'string' ? escaped(value) : literal(value)
}

/** The form of a value inside an array or a map. */
function literal(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return `'${escaped(value)}'`
    case 'number':
    case 'bigint':
    case 'boolean':
      return String(value)
    case 'object':
      if (value === null) return 'NULL'
      if (Array.isArray(value)) return `[${value.map(literal).join(',')}]`
      return `{${Object.entries(value)
        .map(([key, item]) => `${literal(key)}:${literal(item)}`)
        .join(',')}}`
    default:
      throw new TypeError(`a parameter cannot be a ${typeof value}`)
  }
}

const escapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  "'": "\\'",
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\0': '\\0',
}

function escaped(text: string): string {
  return text.replace(/[\\'\t\n\r\0]/g, character => escapes[character] ?? character)
}

/*
 * Ids in parts, each for one statement: ClickHouse bounds the length of a parameter, at 128 KiB by default. A server that refuses one
 * refuses it again, however often the statement is repeated.
 */

// A character takes three bytes at most, with its escapes.
const charsMax = 40_000

export function* idParts(ids: readonly string[], countMax: number): Generator<string[]> {
  let part: string[] = []
  let chars = 0
  for (const id of ids) {
    if (part.length > 0 && (part.length === countMax || chars + id.length > charsMax)) {
      yield part
      part = []
      chars = 0
    }
    part.push(id)
    chars += id.length
  }
  if (part.length > 0) yield part
}
