/**
 * Avro types, compiled with what avsc does not have: 64-bit integers stay exact, the counts in a value are checked, so is
 * its text, and a writer's union may have types that we cannot read.
 *
 * A value may hold damaged bytes. avsc makes an array of any length that the bytes claim, so twenty bytes could take
 * all memory. Here all counts of a value together must fit into its bytes.
 *
 * avsc replaces bytes that are not UTF-8 by U+FFFD. Two ids that differ only in such bytes would become one. Here the
 * caller begins each value with `beginValue` and ends it with `checkedText`.
 *
 * avsc refuses a writer's union if one of its types does not fit. By Avro's rules only a value of that type is an error:
 * a generator may declare each field nullable, also one that is never null.
 *
 * Source: Avro 1.11 specification, "Schema Resolution".
 */
import { isUtf8 } from 'node:buffer'
import avro from 'avsc'
import type { Long } from './event.ts'

/** Compiles a schema document. Throws an `Error` if it is not Avro. */
export function compileSchema(schema: object): avro.Type {
  return avro.Type.forSchema(schema as avro.Schema, {
    registry: {},
    typeHook: (attributes, options) => {
      switch (typeNameOf(attributes)) {
        case 'long':
          return longType
        case 'string':
          return new TextType()
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

// All longs share this buffer: avsc copies what it packs at once.
const packed = Buffer.alloc(8)

/** avsc throws on a long beyond 2^53. This type reads it as a bigint, and everything smaller as a number. */
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

/** avsc's position in the bytes. Its types pass it to each other, but its published types do not contain it. */
interface Tap {
  readonly buf: Buffer
  pos: number
  readLong(): number
  /** `undefined` if the bytes end within the text. */
  readString(): string | undefined
}

// A value is read without interruption, so all types can share this.
let hasMisfit = false
// Items that the arrays and maps of the value have claimed.
let claimed = 0
// A symbol stands in a value for a part that cannot be read, to find its field. It says why.
const invalidText = Symbol('is not UTF-8')
const replacementCharacter = '\ufffd'

class TextType extends avro.types.StringType {
  // A resolver takes this function, so it must not use `this`.
  _read(tap: Tap): unknown {
    const start = tap.pos
    const text = tap.readString()
    // V8 answers this at once for a text of Latin letters. Only if it is true, the bytes are looked at.
    if (!text?.includes(replacementCharacter) || isUtf8(textBytes(tap, start))) return text
    hasMisfit = true
    return invalidText
  }
}

/** The bytes of the text that begins at `start` with its length, and ends at the tap's position. */
function textBytes(tap: Tap, start: number): Buffer {
  let at = start
  while ((tap.buf[at] ?? 0) >= 0x80) at++
  return tap.buf.subarray(at + 1, tap.pos)
}

/** Call it before a value is read with these types. */
export function beginValue(): void {
  hasMisfit = false
  claimed = 0
}

/** The value that was read. Throws an `Error` that names the field if a text in it is not UTF-8, or a part has a type that does not fit. */
export function checkedText<T>(value: T): T {
  if (hasMisfit) throw new Error(misfitIn(value, []))
  return value
}

function misfitIn(value: unknown, path: readonly string[]): string | undefined {
  if (typeof value === 'symbol') return `${pathText(path)} ${value.description}`
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, part] of Object.entries(value)) {
    const found = misfitIn(part, [...path, name])
    if (found) return found
  }
  return undefined
}

// Types call this method for each of their parts, so it is replaced for all of them.
const { createResolver } = avro.Type.prototype
avro.Type.prototype.createResolver = function (this: avro.Type, writer, options) {
  if (!avro.Type.isType(writer, 'union')) return createResolver.call(this, writer, options)
  const { types } = writer as avro.types.UnwrappedUnionType
  const branches = types.map(type => {
    try {
      return this.createResolver(type, options)
    } catch (error) {
      return error as Error
    }
  })
  const resolved = branches.find(branch => !(branch instanceof Error))
  if (!resolved) throw branches.at(-1) ?? new Error('a union has no types')
  const value = (tap: Tap): unknown => {
    const index = tap.readLong()
    const [type, branch] = [types[index], branches[index]]
    if (!type || !branch) throw new Error(`invalid union index: ${index}`)
    if (!(branch instanceof Error)) return (branch as unknown as InnerType)._read(tap)
    inner(type)._skip(tap)
    hasMisfit = true
    return Symbol(
      type.typeName === 'null' ? 'is null' : `is ${type.branchName}, which does not fit our schema`,
    )
  }
  return Object.create(resolved, { _read: { value } })
}

/** A path like those of `faultOf`: `rewards[2].amount_minor`. */
export function pathText(path: readonly string[]): string {
  if (path.length === 0) return 'the state'
  return path
    .map((part, index) => (/^\d+$/.test(part) ? `[${part}]` : index === 0 ? part : `.${part}`))
    .join('')
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
      for (let i = 0; i < count; i++) {
        values.push(items._read(tap))
        // avsc reads on behind the end, as if there were zeros, and looks only when the whole value is read.
        if (tap.pos > tap.buf.length) throw new Error('the bytes end within an array')
      }
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

// Our schemas have no map, but a writer's schema may have one. Its values are skipped.
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
 * The count of the next block of an array or map. 0 ends it. A negative count is followed by the size of the block in
 * bytes. Throws if the value claims more items than it has bytes: every item of ours takes at least one byte. Those of a writer's schema
 * may take none, so the bytes that are left bound no work: each block could claim all of them again.
 */
function readCount(tap: Tap): number {
  let count = tap.readLong()
  if (count < 0) {
    count = -count
    tap.readLong()
  }
  claimed += count
  if (claimed > tap.buf.length) throw new Error(`${claimed} items cannot be in ${tap.buf.length} bytes`)
  return count
}

function inner(type: avro.Type): InnerType {
  return type as unknown as InnerType
}
