/** Single values as ClickHouse's RowBinary has them, one after the other. A value that its type cannot hold is refused. */

export type ByteWriter = ReturnType<typeof createByteWriter>

const utf8BytesPerUnitMax = 3
const varUintByte = 128
const numberOf32Bits = 2 ** 32
const asciiMax = 127
const shortTextMax = 32

/**
 * Writes a short text if all of it is ASCII, as ids nearly always are: letter by letter costs less than one call of `Buffer.write`.
 * Otherwise returns false. The room has to be there.
 */
export function writeShortAscii(text: string, into: Uint8Array, at: number): boolean {
  if (text.length > shortTextMax) return false
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit > asciiMax) return false
    into[at + i] = unit
  }
  return true
}

/** A buffer that grows, from `bytesInitial` on. Each method writes one value of the type that it is named after. */
export function createByteWriter(bytesInitial: number) {
  let buffer = Buffer.allocUnsafe(bytesInitial)
  let used = 0

  function ensure(bytes: number): void {
    if (used + bytes <= buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(used + bytes, buffer.length * 2))
    buffer.copy(larger, 0, 0, used)
    buffer = larger
  }

  function varUint(value: number): void {
    ensure(8)
    let left = value
    while (left >= varUintByte) {
      buffer[used++] = (left % varUintByte) + varUintByte
      left = Math.floor(left / varUintByte)
    }
    buffer[used++] = left
  }

  function write32(value: number): void {
    buffer[used] = value
    buffer[used + 1] = value >>> 8
    buffer[used + 2] = value >>> 16
    buffer[used + 3] = value >>> 24
    used += 4
  }

  /** Whole numbers from 0 on are written as two halves, which costs less than a bigint. */
  function writeWhole(value: number): void {
    write32(value)
    write32(value < numberOf32Bits ? 0 : Math.floor(value / numberOf32Bits))
  }

  return {
    get length(): number {
      return used
    },

    uint8(value: number): void {
      ensure(1)
      used = buffer.writeUInt8(value, used)
    },

    uint16(value: number): void {
      ensure(2)
      used = buffer.writeUInt16LE(value, used)
    },

    uint32(value: number): void {
      ensure(4)
      used = buffer.writeUInt32LE(value, used)
    },

    uint64(value: number | bigint): void {
      ensure(8)
      if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) writeWhole(value)
      else used = buffer.writeBigUInt64LE(exactBigInt(value, 0n, 2n ** 64n - 1n), used)
    },

    /** The two halves of an unsigned 64-bit integer. */
    uint64Halves(low: number, high: number): void {
      ensure(8)
      write32(low)
      write32(high)
    },

    int64(value: number | bigint): void {
      ensure(8)
      if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) writeWhole(value)
      else used = buffer.writeBigInt64LE(exactBigInt(value, -(2n ** 63n), 2n ** 63n - 1n), used)
    },

    varUint,

    string(value: string): void {
      const bytesMax = value.length * utf8BytesPerUnitMax
      if (bytesMax < varUintByte) {
        // The length takes one byte whatever it comes to, so the text can be written before it is known.
        ensure(1 + bytesMax)
        const isWritten = writeShortAscii(value, buffer, used + 1)
        const bytes = isWritten ? value.length : buffer.write(value, used + 1)
        buffer[used] = bytes
        used += 1 + bytes
        return
      }
      const bytes = Buffer.byteLength(value)
      varUint(bytes)
      ensure(bytes)
      used += buffer.write(value, used)
    },

    /** A String of any bytes. */
    blob(value: Uint8Array): void {
      varUint(value.length)
      ensure(value.length)
      buffer.set(value, used)
      used += value.length
    },

    /** The buffer, with room for this many bytes from `length` on. It is valid until the next call of any method. */
    room(bytes: number): Uint8Array {
      ensure(bytes)
      return buffer
    },

    /** Counts bytes that the caller has written into `room`. */
    advance(bytes: number): void {
      used += bytes
    },

    truncate(length: number): void {
      used = length
    },

    bytes: (): Uint8Array => buffer.subarray(0, used),
  }
}

/** A number beyond 2^53 has lost digits already: those come as bigints. */
function exactBigInt(value: number | bigint, min: bigint, max: bigint): bigint {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw new RangeError('an integer that is not exact')
  }
  if (value < min || value > max) throw new RangeError(`no integer from ${min} to ${max}`)
  return BigInt(value)
}
