/** The compression codecs of Kafka's record batches: all of them, since producers choose and consumers must follow. */
import { promisify } from 'node:util'
import { gunzip, gzip, zstdCompress, zstdDecompress } from 'node:zlib'
import type * as Kafkajs from 'kafkajs'
import { compressFrame, decompressFrame } from 'lz4-napi'
import snappy from 'snappy'

/** How a writer compresses. */
export const compressions = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const
export type Compression = (typeof compressions)[number]

interface Codec {
  compress(bytes: Buffer): Promise<Buffer>
  decompress(bytes: Buffer): Promise<Buffer>
}

// These two can make gigabytes of a small batch; a batch that does is an error instead. The other two cannot.
const bounded = { maxOutputLength: 512 * 1024 ** 2 }

const codecs: Readonly<Record<Exclude<Compression, 'none'>, Codec>> = {
  gzip: {
    compress: bytes => promisify(gzip)(bytes),
    decompress: bytes => promisify(gunzip)(bytes, bounded),
  },
  snappy: {
    compress: bytes => snappy.compress(bytes),
    decompress: uncompressSnappy,
  },
  lz4: {
    compress: bytes => compressFrame(bytes),
    decompress: bytes => decompressFrame(bytes),
  },
  zstd: {
    compress: bytes => promisify(zstdCompress)(bytes),
    decompress: bytes => promisify(zstdDecompress)(bytes, bounded),
  },
}

/** Kafka's number of a compression. */
export function compressionType(
  { CompressionTypes }: typeof Kafkajs,
  compression: Compression,
): Kafkajs.CompressionTypes {
  switch (compression) {
    case 'none':
      return CompressionTypes.None
    case 'gzip':
      return CompressionTypes.GZIP
    case 'snappy':
      return CompressionTypes.Snappy
    case 'lz4':
      return CompressionTypes.LZ4
    case 'zstd':
      return CompressionTypes.ZSTD
    default:
      return compression satisfies never
  }
}

/** Registers the codecs, for reading and for writing. */
export function registerCodecs({ CompressionCodecs, CompressionTypes }: typeof Kafkajs): void {
  CompressionCodecs[CompressionTypes.GZIP] = () => forKafkajs(codecs.gzip)
  CompressionCodecs[CompressionTypes.Snappy] = () => forKafkajs(codecs.snappy)
  CompressionCodecs[CompressionTypes.LZ4] = () => forKafkajs(codecs.lz4)
  CompressionCodecs[CompressionTypes.ZSTD] = () => forKafkajs(codecs.zstd)
}

function forKafkajs({ compress, decompress }: Codec) {
  return {
    compress: ({ buffer }: { buffer: Buffer }) => compress(buffer),
    decompress,
  }
}

const blockHeader = Buffer.from('\x82SNAPPY\0', 'latin1')
const blocksStart = blockHeader.length + 8

/**
 * Java writes Snappy as blocks behind a header of its own (the library snappy-java), C as one block without a header.
 * Throws an `Error` on bytes that are neither.
 */
async function uncompressSnappy(bytes: Buffer): Promise<Buffer> {
  if (!bytes.subarray(0, blockHeader.length).equals(blockHeader)) return uncompressBlock(bytes)
  const parts: Buffer[] = []
  for (let at = blocksStart; at < bytes.length; ) {
    const end = at + 4 + bytes.readUInt32BE(at)
    parts.push(await uncompressBlock(bytes.subarray(at + 4, end)))
    at = end
  }
  return Buffer.concat(parts)
}

async function uncompressBlock(block: Buffer): Promise<Buffer> {
  return Buffer.from(await snappy.uncompress(block))
}
