/** The codecs of Avro object container files, with a bound on what a block may become. */
import { promisify } from 'node:util'
import { crc32, inflateRaw } from 'node:zlib'
import snappy from 'snappy'

/** Gives back what a block was before it was stored. Throws an `Error` on damage, and on more than `blockBytesMax`. */
export type Decompress = (stored: Buffer) => Promise<Buffer>

/** No writer comes near it (their blocks are some 64 KiB), and a damaged or hostile one takes no more memory. */
export const blockBytesMax = 64 * 1024 ** 2

export const codecs: ReadonlyMap<string, Decompress> = new Map([
  ['null', (stored: Buffer) => Promise.resolve(stored)],
  ['deflate', inflate],
  ['snappy', uncompressSnappy],
])

// What may follow the deflate data is not looked at: the Python library leaves the end of zlib's checksum there.
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
  if (crc32(block) !== expected) throw new Error('its checksum does not fit')
  return block
}

/** Snappy data begin with what they will become: a number of bytes, seven bits at a time. */
function uncompressedBytes(compressed: Buffer): number {
  let value = 0
  for (const [at, byte] of compressed.subarray(0, 5).entries()) {
    value += (byte & 0x7f) * 128 ** at
    if (byte < 0x80) return value
  }
  throw new Error('its snappy data are cut off')
}

function tooLarge(): Error {
  return new Error(`it would take more than ${blockBytesMax / 1024 ** 2} MiB`)
}
