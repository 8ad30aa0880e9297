/**
 * Rows as bytes: ClickHouse's RowBinary, written once from the values. No text, no escaping.
 *
 * An encoder is made of a column's type, so the same list of columns says what is written and what the server is told
 * that it gets: the header that goes before the rows (`namesAndTypes`) has names and types, and ClickHouse refuses rows
 * whose types are not those of its table, rather than reading the bytes as something else.
 *
 * Types: String, Bool, UInt8 to UInt64, Int64, DateTime64(3, ...), and LowCardinality, Nullable, Array and Tuple of these.
 * Values: text or bytes, booleans, numbers and bigints; for a timestamp, milliseconds since the epoch; null where a type is
 * Nullable; an array for an Array; an object for a Tuple, by the names of its elements.
 *
 * Source: ClickHouse documentation, "RowBinary" and "RowBinaryWithNamesAndTypes".
 */
import { type ByteWriter, createByteWriter } from './byte-writer.ts'

export interface TableColumn {
  name: string
  /** As the table has it, to the letter. */
  type: string
}

/** Writes a row's values one after the other, in the order of its table's columns. */
export type RowEncoder<Row> = (out: ByteWriter, row: Row) => void

/** Rows of one table, one after the other in a buffer that grows. */
export interface RowWriter<Row = readonly unknown[]> {
  readonly rows: number
  /** Adds one row. Throws a `TypeError` or `RangeError` if a value does not fit its type, and then adds nothing. */
  add(row: Row): void
  /** Adds the one row that `write` writes. If it returns false, it must have written nothing, and no row is added. */
  addFrom<Source>(write: (out: ByteWriter, source: Source) => boolean, source: Source): boolean
  /** All rows. The bytes stay as they are until the next `add`. */
  bytes(): Uint8Array
}

/** The format that an insert names: the header of `namesAndTypes`, then the rows. */
export const rowFormat = 'RowBinaryWithNamesAndTypes'

/** Writes rows that are a value for each column. */
export function createRowWriter(columns: readonly TableColumn[], bytesInitial?: number): RowWriter {
  const encoders = columns.map(({ type }) => encoderOf(type))
  return createEncodedRowWriter((out, values) => {
    if (values.length !== encoders.length) {
      throw new TypeError(`a row has ${values.length} values for ${encoders.length} columns`)
    }
    for (let i = 0; i < encoders.length; i++) encoders[i]?.(out, values[i])
  }, bytesInitial)
}

/** Writes rows by an encoder of their own: half the work of `createRowWriter`, for the rows that come by the million. */
export function createEncodedRowWriter<Row>(encode: RowEncoder<Row>, bytesInitial = 65_536): RowWriter<Row> {
  const out = createByteWriter(bytesInitial)
  let rows = 0
  return {
    get rows() {
      return rows
    },

    add(row) {
      const start = out.length
      try {
        encode(out, row)
      } catch (error) {
        // Half a row would be read as the beginning of the next one.
        out.truncate(start)
        throw error
      }
      rows++
    },

    addFrom(write, source) {
      if (!write(out, source)) return false
      rows++
      return true
    },

    bytes: () => out.bytes(),
  }
}

/** The rows of a small insert. */
export function encodeRows(
  columns: readonly TableColumn[],
  rows: readonly (readonly unknown[])[],
): Uint8Array {
  const writer = createRowWriter(columns, 1_024)
  for (const row of rows) writer.add(row)
  return writer.bytes()
}

/** What goes before the rows. */
export function namesAndTypes(columns: readonly TableColumn[]): Uint8Array {
  const out = createByteWriter(1_024)
  out.varUint(columns.length)
  for (const { name } of columns) out.string(name)
  for (const { type } of columns) out.string(type)
  return out.bytes()
}

type Encode = (out: ByteWriter, value: unknown) => void

/** Throws a `TypeError` on a type that is not in the list above. */
function encoderOf(type: string): Encode {
  const [, name = '', inner = ''] = /^(\w+)(?:\((.*)\))?$/s.exec(type) ?? []
  switch (name) {
    case 'String':
      return (out, value) =>
        value instanceof Uint8Array ? out.blob(value) : out.string(expected('string', value))
    case 'Bool':
      return (out, value) => out.uint8(expected('boolean', value) ? 1 : 0)
    case 'UInt8':
      return (out, value) => out.uint8(expectedUint(value, 2 ** 8 - 1))
    case 'UInt16':
      return (out, value) => out.uint16(expectedUint(value, 2 ** 16 - 1))
    case 'UInt32':
      return (out, value) => out.uint32(expectedUint(value, 2 ** 32 - 1))
    case 'UInt64':
      return (out, value) => out.uint64(expectedLong(value))
    case 'Int64':
      return (out, value) => out.int64(expectedLong(value))
    case 'DateTime64':
      if (!/^3\b/.test(inner)) throw new TypeError(`no encoder for ${type}: only milliseconds are known`)
      return (out, value) => out.int64(expected('number', value))
    case 'LowCardinality':
      return encoderOf(inner)
    case 'Nullable':
      return nullable(encoderOf(inner))
    case 'Array':
      return arrayOf(encoderOf(inner))
    case 'Tuple':
      return tupleOf(elementsOf(inner))
    default:
      throw new TypeError(`no encoder for ${type}`)
  }
}

function nullable(encode: Encode): Encode {
  return (out, value) => {
    out.uint8(value === null ? 1 : 0)
    if (value !== null) encode(out, value)
  }
}

function arrayOf(encode: Encode): Encode {
  return (out, value) => {
    if (!Array.isArray(value)) throw new TypeError(`an array was expected, and ${described(value)} came`)
    out.varUint(value.length)
    for (const item of value) encode(out, item)
  }
}

function tupleOf(elements: readonly TableColumn[]): Encode {
  const fields = elements.map(({ name, type }) => ({ name, encode: encoderOf(type) }))
  return (out, value) => {
    if (typeof value !== 'object' || value === null) {
      throw new TypeError(`an object was expected, and ${described(value)} came`)
    }
    for (const { name, encode } of fields) encode(out, (value as Record<string, unknown>)[name])
  }
}

/** `a String, b Array(Tuple(c UInt8, d UInt8))` as names and types. */
function elementsOf(text: string): TableColumn[] {
  const elements: TableColumn[] = []
  let depth = 0
  let start = 0
  for (let i = 0; i <= text.length; i++) {
    if (text[i] === '(') depth++
    if (text[i] === ')') depth--
    if (i < text.length && (text[i] !== ',' || depth > 0)) continue
    const [, name, type] = /^\s*(\w+)\s+(.+?)\s*$/s.exec(text.slice(start, i)) ?? []
    if (name === undefined || type === undefined) throw new TypeError(`no names in the tuple (${text})`)
    elements.push({ name, type })
    start = i + 1
  }
  return elements
}

interface Primitive {
  string: string
  boolean: boolean
  number: number
}

function expected<Name extends keyof Primitive>(name: Name, value: unknown): Primitive[Name] {
  if (typeof value === name) return value as Primitive[Name]
  throw new TypeError(`a ${name} was expected, and ${described(value)} came`)
}

// Node's buffers would cut a fraction off, take NaN for 0, and quote what is out of range.
function expectedUint(value: unknown, max: number): number {
  const number = expected('number', value)
  if (Number.isInteger(number) && number >= 0 && number <= max) return number
  throw new RangeError(`no whole number from 0 to ${max}`)
}

function expectedLong(value: unknown): number | bigint {
  if (typeof value === 'number' || typeof value === 'bigint') return value
  throw new TypeError(`an integer was expected, and ${described(value)} came`)
}

// The kind alone: what is inserted is private, and errors go to logs.
function described(value: unknown): string {
  return value === null ? 'null' : `a value of type ${typeof value}`
}
