/**
 * The compression codecs of Kafka's record batches. All of them, because producers choose and consumers must follow.
 */
import { promisify } from 'node:util'
import { gunzip, gzip, zstdCompress, zstdDecompress } from 'node:zlib'
import type * as Kafkajs from 'kafkajs'
import { compressFrame, decompressFrame } from 'lz4-napi'
import snappy from 'snappy'

/** The compressions that a writer can use. */
export const compressions = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const
export type Compression = (typeof compressions)[number]

/**
 * The most that a batch may hold after decompression. A small batch can unpack to a thousand times its size and more, so
 * without a bound one batch takes all memory. A topic accepts batches of 1 MiB by default, and events become 5 to 20
 * times smaller, so no batch of events comes near this.
 */
export const batchBytesMax = 64 * 1024 ** 2

/** A batch is above a bound, so nothing of it is read. The message says which bound. */
export class TooMuch extends Error {}

const unpackedTooMuch = () => new TooMuch(`unpacks to more than ${batchBytesMax / 1024 ** 2} MiB`)

interface Codec {
  compress(bytes: Buffer): Promise<Buffer>
  /** Throws `TooMuch` before it has unpacked more than `bytesMax`, or an `Error` if the bytes are damaged. */
  decompress(bytes: Buffer, bytesMax: number): Promise<Buffer>
}

const codecs: Readonly<Record<Exclude<Compression, 'none'>, Codec>> = {
  gzip: {
    compress: bytes => promisify(gzip)(bytes),
    decompress: (bytes, bytesMax) => inZlib(promisify(gunzip)(bytes, { maxOutputLength: bytesMax })),
  },
  snappy: {
    compress: bytes => snappy.compress(bytes),
    decompress: uncompressSnappy,
  },
  lz4: {
    compress: bytes => compressFrame(bytes),
    async decompress(bytes, bytesMax) {
      // The library has no bound of its own.
      if (lz4LengthMax(bytes) > bytesMax) throw unpackedTooMuch()
      return decompressFrame(bytes)
    },
  },
  zstd: {
    compress: bytes => promisify(zstdCompress)(bytes),
    decompress: (bytes, bytesMax) => inZlib(promisify(zstdDecompress)(bytes, { maxOutputLength: bytesMax })),
  },
}

/** The compression of a batch, by the number in its attributes. `undefined` if Kafka has no such compression. */
export function compressionOf(attributes: number): Compression | undefined {
  return compressions[attributes & 0x07]
}

/**
 * The unpacked bytes. Throws `TooMuch` if they are more than `bytesMax`, or an `Error` if they are damaged.
 */
export async function unpack(compression: Compression, bytes: Buffer, bytesMax: number): Promise<Buffer> {
  // An answer has few uncompressed bytes: a fetch limits them.
  return compression === 'none' ? bytes : codecs[compression].decompress(bytes, bytesMax)
}

/** Node's zlib stops at its bound. */
async function inZlib(unpacked: Promise<Buffer>): Promise<Buffer> {
  try {
    return await unpacked
  } catch (cause) {
    const isTooLarge = cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE'
    throw isTooLarge ? unpackedTooMuch() : cause
  }
}

/** Kafka's number for a compression, which kafkajs has, too. */
export function compressionType(compression: Compression): Kafkajs.CompressionTypes {
  return compressions.indexOf(compression)
}

/** Registers the codecs, for reading and for writing. */
export function registerCodecs({ CompressionCodecs }: typeof Kafkajs): void {
  const registered: Record<number, unknown> = CompressionCodecs
  for (const [name, codec] of Object.entries(codecs))
    registered[compressionType(name as Compression)] = () => forKafkajs(codec)
}

// kafkajs compresses with these. Its own decoder of batches is replaced, and decompresses in the tests only.
function forKafkajs({ compress, decompress }: Codec) {
  return {
    compress: ({ buffer }: { buffer: Buffer }) => compress(buffer),
    decompress: (bytes: Buffer) => decompress(bytes, batchBytesMax),
  }
}

const blockHeader = Buffer.from('\x82SNAPPY\0', 'latin1')
const blocksStart = blockHeader.length + 8

/**
 * Java writes Snappy as blocks after a header (the library snappy-java), C as one block without a header. Throws an
 * `Error` if the bytes are neither.
 */
async function uncompressSnappy(bytes: Buffer, bytesMax: number): Promise<Buffer> {
  if (!bytes.subarray(0, blockHeader.length).equals(blockHeader)) return uncompressBlock(bytes, bytesMax)
  const parts: Buffer[] = []
  let left = bytesMax
  for (let at = blocksStart; at < bytes.length; ) {
    const end = at + 4 + bytes.readUInt32BE(at)
    if (end > bytes.length) throw new Error('its snappy data are cut off')
    const part = await uncompressBlock(bytes.subarray(at + 4, end), left)
    left -= part.length
    parts.push(part)
    at = end
  }
  return Buffer.concat(parts)
}

async function uncompressBlock(block: Buffer, bytesMax: number): Promise<Buffer> {
  if (snappyLength(block) > bytesMax) throw unpackedTooMuch()
  return Buffer.from(await snappy.uncompress(block))
}

/** A block of Snappy begins with its decompressed length, seven bits at a time. */
function snappyLength(block: Uint8Array): number {
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
 * The most that LZ4 frames can unpack to. A block does not tell its length, so each counts as full. That is exact for all but the last
 * block of a frame. The format is in LZ4's "Frame Format Description" 1.6.
 */
function lz4LengthMax(frames: Buffer): number {
  let length = 0
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
      const size = frames.readUInt32LE(at) & 0x7fffffff
      at += 4
      if (size === 0) break
      length += bytesMax
      at += size + (hasBlockChecksum ? 4 : 0)
    }
    at += hasChecksum ? 4 : 0
    if (at > frames.length) throw new Error('its LZ4 data are cut off')
  }
  return length
}
