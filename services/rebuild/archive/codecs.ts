/** The codecs of Avro object container files, with a limit on the size of a decompressed block. */
import { promisify } from 'node:util'
import { crc32, inflateRaw } from 'node:zlib'
import snappy from 'snappy'

/** Decompresses a block. Throws an `Error` if it is damaged, or larger than `blockBytesMax`. */
export type Decompress = (stored: Buffer) => Promise<Buffer>

/** Writers use blocks of about 64 KiB. The limit keeps a damaged or hostile file from using more memory. */
export const blockBytesMax = 64 * 1024 ** 2

export const codecs: ReadonlyMap<string, Decompress> = new Map([
  ['null', (stored: Buffer) => Promise.resolve(stored)],
  ['deflate', inflate],
  ['snappy', uncompressSnappy],
])

// Bytes after the deflate data are ignored: the Python library leaves the end of zlib's checksum there.
async function inflate(stored: Buffer): Promise<Buffer> {
  try {
    return await promisify(inflateRaw)(stored, { maxOutputLength: blockBytesMax })
  } catch (cause) {
    const isTooLarge = cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE'
    throw isTooLarge ? tooLarge() : cause
  }
}

const crcBytes = 4

async function uncompressSnappy(stored: Buffer): Promise<Buffer> {
  const compressed = stored.subarray(0, -crcBytes)
  if (uncompressedBytes(compressed) > blockBytesMax) throw tooLarge()
  const block = Buffer.from(await snappy.uncompress(compressed))
  const expected = stored.readUInt32BE(compressed.length)
  if (crc32(block) !== expected) throw new Error('its checksum is wrong')
  return block
}

/** Snappy data begin with their decompressed size, seven bits at a time. */
function uncompressedBytes(compressed: Buffer): number {
  let value = 0
  for (const [at, byte] of compressed.subarray(0, 5).entries()) {
    value += (byte & 0x7f) * 128 ** at
    if (byte < 0x80) return value
  }
  throw new Error('its snappy data are cut off')
}

function tooLarge(): Error {
  return new Error(`it is larger than ${blockBytesMax / 1024 ** 2} MiB`)
}
