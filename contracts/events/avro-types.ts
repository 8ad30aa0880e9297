/**
 * Avro schemas compiled for what avsc alone does not do: 64-bit integers kept exact, and no trust in a value's own counts.
 *
 * A value may hold damaged bytes. avsc makes an array of whatever length the bytes claim, so that twenty of them
 * can take all memory; here a count must fit into the bytes that are left.
 */
import avro from 'avsc'
import type { Long } from './event.ts'

/** Compiles a schema document. Throws an `Error` on one that is not Avro. */
export function compileSchema(schema: object): avro.Type {
  return avro.Type.forSchema(schema as avro.Schema, {
    registry: {},
    typeHook: (attributes, options) => {
      switch (typeNameOf(attributes)) {
        case 'long':
          return longType
        case 'array':
          return new BoundedArrayType(attributes, options)
        case 'map':
          return new BoundedMapType(attributes, options)
        default:
          return undefined
      }
    },
  })
}

function typeNameOf(schema: unknown): unknown {
  return typeof schema === 'object' && schema !== null && 'type' in schema ? schema.type : schema
}

// avsc takes what it packs out of this at once, so all longs can share it.
const packed = Buffer.alloc(8)

/** avsc throws on a long beyond 2^53; this one reads it as a bigint, and everything smaller as a number. */
const longType = avro.types.LongType.__with({
  fromBuffer: (bytes: Buffer): Long => {
    const value = bytes.readInt32LE(4) * 0x1_0000_0000 + bytes.readUInt32LE(0)
    return Number.isSafeInteger(value) ? value : bytes.readBigInt64LE(0)
  },
  toBuffer: (value: Long): Buffer => {
    if (typeof value === 'bigint') {
      packed.writeBigInt64LE(value)
    } else {
      const high = Math.floor(value / 0x1_0000_0000)
      packed.writeUInt32LE(value - high * 0x1_0000_0000, 0)
      packed.writeInt32LE(high, 4)
    }
    return packed
  },
  fromJSON: Number,
  toJSON: Number,
  isValid: (value: unknown): boolean =>
    typeof value === 'bigint' ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value),
  compare: (a: Long, b: Long): number => (a < b ? -1 : a > b ? 1 : 0),
})

/** avsc's place in the bytes, as its types hand it to each other; its published types leave it out. */
interface Tap {
  readonly buf: Buffer
  pos: number
  readLong(): number
  readString(): string
}

interface InnerType {
  _read(tap: Tap): unknown
  _skip(tap: Tap): void
}

class BoundedArrayType extends avro.types.ArrayType {
  _read(tap: Tap): unknown[] {
    const items = inner(this.itemsType)
    const values: unknown[] = []
    for (let count = readCount(tap); count > 0; count = readCount(tap)) {
      for (let i = 0; i < count; i++) values.push(items._read(tap))
    }
    return values
  }

  _skip(tap: Tap): void {
    const items = inner(this.itemsType)
    for (let count = readCount(tap); count > 0; count = readCount(tap)) {
      for (let i = 0; i < count; i++) items._skip(tap)
    }
  }
}

// No schema of ours has a map, but a writer's may: its values are read past.
class BoundedMapType extends avro.types.MapType {
  _skip(tap: Tap): void {
    const values = inner(this.valuesType as avro.Type)
    for (let count = readCount(tap); count > 0; count = readCount(tap)) {
      for (let i = 0; i < count; i++) {
        tap.readString()
        values._skip(tap)
      }
    }
  }
}

/**
 * The count of the next block of an array or map; 0 ends it. A negative count is followed by the block's bytes.
 * Throws where more items are claimed than bytes are left: none of ours takes less than a byte.
 */
function readCount(tap: Tap): number {
  let count = tap.readLong()
  if (count < 0) {
    count = -count
    tap.readLong()
  }
  const bytesLeft = tap.buf.length - tap.pos
  if (count > Math.max(bytesLeft, 0)) throw new Error(`${count} items cannot be in ${bytesLeft} bytes`)
  return count
}

function inner(type: avro.Type): InnerType {
  return type as unknown as InnerType
}
