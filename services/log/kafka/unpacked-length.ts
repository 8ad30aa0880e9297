/**
 * How long LZ4 and Snappy data are after decompression, without decompressing them. The libraries for these two have no
 * bound of their own. Throws an `Error` if the data are damaged.
 */

/** A block of Snappy begins with its decompressed length, seven bits at a time. */
export function snappyLength(block: Uint8Array): number {
  let length = 0
  for (const [at, byte] of block.subarray(0, 5).entries()) {
    length += (byte & 0x7f) * 128 ** at
    if (byte < 0x80) return length
  }
  throw new Error('its snappy data are cut off')
}

const frameMagic = 0x184d2204
const blockBytesMax: Readonly<Record<number, number>> = {
  4: 64 * 1024,
  5: 256 * 1024,
  6: 1024 ** 2,
  7: 4 * 1024 ** 2,
}

/**
 * The length of LZ4 frames. A block does not tell its length. So each block counts as full, which is true for all but
 * the last one of a frame. Only if that is more than `enough`, the blocks are measured.
 */
export function lz4Length(frames: Buffer, enough: number): number {
  const blocks = lz4Blocks(frames)
  const most = blocks.reduce((sum, { bytesMax }) => sum + bytesMax, 0)
  if (most <= enough) return most
  return blocks.reduce(
    (sum, { bytes, isStored }) => sum + (isStored ? bytes.length : lz4BlockLength(bytes)),
    0,
  )
}

interface Lz4Block {
  bytes: Buffer
  /** It is not compressed. */
  isStored: boolean
  /** The most that it may decompress to. */
  bytesMax: number
}

/** The format is in LZ4's "Frame Format Description" 1.6. */
function lz4Blocks(frames: Buffer): Lz4Block[] {
  const blocks: Lz4Block[] = []
  for (let at = 0; at < frames.length; ) {
    if (frames.readUInt32LE(at) !== frameMagic) throw new Error('its data are no LZ4 frame')
    const flags = frames.readUInt8(at + 4)
    const bytesMax = blockBytesMax[(frames.readUInt8(at + 5) >> 4) & 7]
    if (bytesMax === undefined) throw new Error('its LZ4 frame has an unknown block size')
    const [hasBlockChecksum, hasLength, hasChecksum, hasDictionary] = [0x10, 0x08, 0x04, 0x01].map(
      flag => (flags & flag) !== 0,
    )
    at += 4 + 2 + (hasLength ? 8 : 0) + (hasDictionary ? 4 : 0) + 1
    for (;;) {
      const size = frames.readUInt32LE(at)
      at += 4
      if (size === 0) break
      const length = size & 0x7fffffff
      const bytes = frames.subarray(at, at + length)
      if (bytes.length < length) throw new Error('its LZ4 data are cut off')
      blocks.push({ bytes, isStored: size > 0x7fffffff, bytesMax })
      at += length + (hasBlockChecksum ? 4 : 0)
    }
    at += hasChecksum ? 4 : 0
  }
  return blocks
}

/**
 * A block is a row of sequences: literals to copy from the block, and a match to copy from what is decompressed
 * already. Four bits each give the two lengths, and continue in further bytes if they are all set.
 */
function lz4BlockLength(block: Buffer): number {
  let at = 0
  let total = 0

  function lengthFrom(bits: number): number {
    let length = bits
    if (bits < 15) return length
    for (;;) {
      const more = byteAt(block, at++)
      length += more
      if (more < 255) return length
    }
  }

  while (at < block.length) {
    const token = byteAt(block, at++)
    const literals = lengthFrom(token >> 4)
    at += literals
    total += literals
    // The last sequence ends after its literals.
    if (at >= block.length) break
    at += 2
    total += lengthFrom(token & 0x0f) + 4
  }
  if (at > block.length) throw new Error('its LZ4 data are cut off')
  return total
}

function byteAt(block: Buffer, at: number): number {
  const byte = block[at]
  if (byte === undefined) throw new Error('its LZ4 data are cut off')
  return byte
}
