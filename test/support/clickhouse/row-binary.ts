/** Decodes what row-binary.ts has encoded, by the same types: for models of ClickHouse, and to inspect rows. */
import type { TableInsert } from '../../../services/tables/port.ts'

export type DecodedRow = Record<string, unknown>

/** Integers of 64 bits are bigints, timestamps milliseconds as numbers, tuples objects. */
export function decodeRows({ columns, rows }: Pick<TableInsert, 'columns' | 'rows'>): DecodedRow[] {
  const bytes = Buffer.from(rows.buffer, rows.byteOffset, rows.byteLength)
  const decoded: DecodedRow[] = []
  const at = { offset: 0 }
  while (at.offset < bytes.length) {
    decoded.push(Object.fromEntries(columns.map(({ name, type }) => [name, readValue(bytes, at, type)])))
  }
  return decoded
}

/** The value of 64 bits in two halves, as ClickHouse's UInt64 has it. */
export function unsigned64({ low, high }: { low: number; high: number }): bigint {
  return (BigInt.asUintN(32, BigInt(high)) << 32n) | BigInt.asUintN(32, BigInt(low))
}

export interface Place {
  offset: number
}

/** A value of this type. Throws a `RangeError` if the bytes end within it, as all reading does. */
export function readValue(bytes: Buffer, at: Place, type: string): unknown {
  const [, name = '', inner = ''] = /^(\w+)(?:\((.*)\))?$/s.exec(type) ?? []
  switch (name) {
    case 'String': {
      const length = readVarUint(bytes, at)
      return bytes.toString('utf8', at.offset, skip(bytes, at, length))
    }
    case 'Bool':
      return bytes[skip(bytes, at, 1) - 1] === 1
    case 'UInt8':
      return bytes.readUInt8(skip(bytes, at, 1) - 1)
    case 'UInt16':
    case 'Date':
      return bytes.readUInt16LE(skip(bytes, at, 2) - 2)
    case 'UInt32':
      return bytes.readUInt32LE(skip(bytes, at, 4) - 4)
    case 'UInt64':
      return bytes.readBigUInt64LE(skip(bytes, at, 8) - 8)
    case 'Int64':
      return bytes.readBigInt64LE(skip(bytes, at, 8) - 8)
    case 'DateTime64':
      return Number(bytes.readBigInt64LE(skip(bytes, at, 8) - 8))
    case 'LowCardinality':
      return readValue(bytes, at, inner)
    case 'Nullable':
      return bytes[skip(bytes, at, 1) - 1] === 1 ? null : readValue(bytes, at, inner)
    case 'Array':
      return Array.from({ length: readVarUint(bytes, at) }, () => readValue(bytes, at, inner))
    case 'Tuple':
      // Tuples are never nested, and no type within them contains a comma.
      return Object.fromEntries(
        inner.split(', ').map(element => {
          const [field = '', fieldType = ''] = element.split(' ')
          return [field, readValue(bytes, at, fieldType)]
        }),
      )
    default:
      throw new TypeError(`no decoder for ${type}`)
  }
}

/** Returns the new place. */
export function skip(bytes: Buffer, at: Place, count: number): number {
  at.offset += count
  if (at.offset > bytes.length) throw new RangeError('the bytes end before the value')
  return at.offset
}

export function readVarUint(bytes: Buffer, at: Place): number {
  let value = 0
  for (let shift = 1; ; shift *= 128) {
    const byte = bytes[skip(bytes, at, 1) - 1] ?? 0
    value += (byte % 128) * shift
    if (byte < 128) return value
  }
}
