/** Decodes what row-binary.ts has encoded, by the same types: for models of ClickHouse, and to inspect rows. */
import type { TableInsert } from '../../../services/tables/port.ts'

export type DecodedRow = Record<string, unknown>

/** Integers of 64 bits are bigints, timestamps milliseconds as numbers, tuples objects. */
export function decodeRows({ columns, rows }: Pick<TableInsert, 'columns' | 'rows'>): DecodedRow[] {
  const bytes = Buffer.from(rows.buffer, rows.byteOffset, rows.byteLength)
  const decoded: DecodedRow[] = []
  const at = { offset: 0 }
  while (at.offset < bytes.length) {
    decoded.push(Object.fromEntries(columns.map(({ name, type }) => [name, read(bytes, at, type)])))
  }
  return decoded
}

/** The value of 64 bits in two halves, as ClickHouse's UInt64 has it. */
export function unsigned64({ low, high }: { low: number; high: number }): bigint {
  return (BigInt.asUintN(32, BigInt(high)) << 32n) | BigInt.asUintN(32, BigInt(low))
}

interface Place {
  offset: number
}

function read(bytes: Buffer, at: Place, type: string): unknown {
  const [, name = '', inner = ''] = /^(\w+)(?:\((.*)\))?$/s.exec(type) ?? []
  switch (name) {
    case 'String': {
      const length = varUint(bytes, at)
      return bytes.toString('utf8', at.offset, skip(at, length))
    }
    case 'Bool':
      return bytes[skip(at, 1) - 1] === 1
    case 'UInt8':
      return bytes.readUInt8(skip(at, 1) - 1)
    case 'UInt16':
      return bytes.readUInt16LE(skip(at, 2) - 2)
    case 'UInt32':
      return bytes.readUInt32LE(skip(at, 4) - 4)
    case 'UInt64':
      return bytes.readBigUInt64LE(skip(at, 8) - 8)
    case 'Int64':
      return bytes.readBigInt64LE(skip(at, 8) - 8)
    case 'DateTime64':
      return Number(bytes.readBigInt64LE(skip(at, 8) - 8))
    case 'LowCardinality':
      return read(bytes, at, inner)
    case 'Nullable':
      return bytes[skip(at, 1) - 1] === 1 ? null : read(bytes, at, inner)
    case 'Array':
      return Array.from({ length: varUint(bytes, at) }, () => read(bytes, at, inner))
    case 'Tuple':
      // Tuples are never nested, and no type within them contains a comma.
      return Object.fromEntries(
        inner.split(', ').map(element => {
          const [field = '', fieldType = ''] = element.split(' ')
          return [field, read(bytes, at, fieldType)]
        }),
      )
    default:
      throw new TypeError(`no decoder for ${type}`)
  }
}

function skip(at: Place, bytes: number): number {
  at.offset += bytes
  return at.offset
}

function varUint(bytes: Buffer, at: Place): number {
  let value = 0
  for (let shift = 1; ; shift *= 128) {
    const byte = bytes[skip(at, 1) - 1] ?? 0
    value += (byte % 128) * shift
    if (byte < 128) return value
  }
}
