/**
 * Writes a statement's parameters into its text, as literals of their declared types.
 *
 * chDB keeps the parameters of all connections in one place, and therefore runs statements that have some one after
 * the other, in the whole process: a slow fold would hold up every request. As literals they are the statement's own.
 */
import type { Statement } from './port.ts'

// What must not be looked into comes first: strings, quoted names and comments may hold braces.
const tokens =
  /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`|--[^\n]*|\/\*.*?\*\/|\{\s*(?<name>\w+)\s*:\s*(?<type>[^{}]+?)\s*\}/gs

/**
 * The statement's text with each `{name:Type}` replaced. Values are strings, finite numbers, bigints, booleans, null,
 * arrays of these, and plain objects for maps. Throws a `TypeError` that names the parameter on anything else.
 */
export function bindParameters({ query, query_params }: Statement): string {
  if (!query_params) return query
  return query.replace(tokens, (token, ...rest) => {
    const { name, type } = rest.at(-1) as { name?: string; type?: string }
    if (name === undefined) return token
    return `CAST(${castable(name, query_params[name])} AS ${type})`
  })
}

/** What CAST turns into the declared type: a text, but for maps, which it does not read from one. */
function castable(name: string, value: unknown): string {
  if (value === null) return 'NULL'
  if (typeof value === 'string') return quoted(value)
  const literal = literalOf(name, value)
  return literal.startsWith('map(') ? literal : quoted(literal)
}

function literalOf(name: string, value: unknown): string {
  switch (typeof value) {
    case 'string':
      return quoted(value)
    case 'bigint':
    case 'boolean':
      return String(value)
    case 'number':
      // A whole number beyond 2^53 has lost digits already; those come as bigints or strings.
      if (Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))) {
        return String(value)
      }
      throw new TypeError(`parameter ${name} is not exact: ${value}`)
    case 'object':
      return value === null ? 'NULL' : compositeLiteral(name, value)
    default:
      throw new TypeError(`parameter ${name} is ${value === undefined ? 'missing' : `a ${typeof value}`}`)
  }
}

function compositeLiteral(name: string, value: object): string {
  if (Array.isArray(value)) return `[${value.map(item => literalOf(name, item)).join(',')}]`
  if (Object.getPrototypeOf(value) !== Object.prototype) {
    throw new TypeError(`parameter ${name} is neither an array nor a plain object`)
  }
  return `map(${Object.entries(value)
    .map(([key, item]) => `${quoted(key)},${literalOf(name, item)}`)
    .join(',')})`
}

// NUL is escaped because the text goes through C; the rest of the control characters may stand as they are.
function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\0', '\\0')}'`
}
