/**
 * Avro object container files: a header with the writer's schema, then blocks of objects, each closed by the file's own
 * sync marker.
 *
 * Read here and not by avsc, whose decoder takes a file that is cut off for one that ends, and does not see bytes that
 * are left in a block after its objects. Neither goes unnoticed here, but a file that ends between two blocks is whole
 * by all that can be told. Memory is bounded, whatever a file claims.
 *
 * Source: Avro 1.11 specification, "Object Container Files".
 */
import { isUtf8 } from 'node:buffer'
import { type ByteReader, CutOff } from './archive-bytes.ts'
import { blockBytesMax, codecs, type Decompress } from './archive-codecs.ts'
import { ArchiveError, type ArchivePlace, messageOf } from './archive-error.ts'
import { containerMagic } from './archive-file.ts'

export interface ContainerHeader {
  /** What the writer's schema says, parsed. */
  schema: unknown
  decompress: Decompress
  sync: Buffer
}

/** Some objects, one behind the other. */
export interface ContainerBlock {
  /** From 1. */
  number: number
  objectCount: number
  avroBinary: Buffer
}

const syncBytes = 16
const metaBytesMax = 4 * 1024 ** 2
const metaEntriesMax = 1_000

/** Reads the header, which tells whether the rest can be read at all. Throws `ArchiveError`. */
export async function readContainerHeader(path: string, bytes: ByteReader): Promise<ContainerHeader> {
  return at(path, {}, 'its header', async () => {
    await bytes.read(containerMagic.length)
    const meta = await readMeta(bytes)
    const sync = Buffer.from(await bytes.read(syncBytes))
    const codec = meta.get('avro.codec')?.toString() ?? 'null'
    const decompress = codecs.get(codec)
    if (!decompress) {
      throw new Error(`names the codec ${JSON.stringify(codec)}; known are ${[...codecs.keys()].join(', ')}`)
    }
    return { schema: parseSchema(meta.get('avro.schema')), decompress, sync }
  })
}

/** The blocks behind the header, in order. Throws `ArchiveError`, naming the block. */
export async function* readContainerBlocks(
  path: string,
  bytes: ByteReader,
  { decompress, sync }: ContainerHeader,
): AsyncGenerator<ContainerBlock> {
  for (let number = 1; !(await bytes.isAtEnd()); number++) {
    const place = { block: number }
    const { objectCount, stored } = await at(path, place, 'it', () => readStoredBlock(bytes, sync))
    const avroBinary = await at(path, place, 'it cannot be decompressed:', () => decompress(stored))
    yield { number, objectCount, avroBinary }
  }
}

async function readStoredBlock(
  bytes: ByteReader,
  sync: Buffer,
): Promise<{ objectCount: number; stored: Buffer }> {
  const objectCount = await readLong(bytes)
  if (objectCount < 0) throw new Error(`claims ${objectCount} objects`)
  const stored = await readSized(bytes, blockBytesMax)
  const marker = await bytes.read(syncBytes)
  if (!marker.equals(sync)) throw new Error("is damaged: behind it the file's sync marker is missing")
  return { objectCount, stored }
}

/** A map of bytes: entries in groups, each behind its count; 0 ends it. */
async function readMeta(bytes: ByteReader): Promise<Map<string, Buffer>> {
  const meta = new Map<string, Buffer>()
  let entriesLeft = metaEntriesMax
  let bytesLeft = metaBytesMax
  for (let count = await readLong(bytes); count !== 0; count = await readLong(bytes)) {
    // A negative count is followed by the size of the group.
    if (count < 0) await readLong(bytes)
    entriesLeft -= Math.abs(count)
    if (entriesLeft < 0) throw new Error(`claims more than ${metaEntriesMax} entries`)
    for (let i = 0; i < Math.abs(count); i++) {
      const name = (await readSized(bytes, bytesLeft)).toString()
      const value = Buffer.from(await readSized(bytes, bytesLeft))
      meta.set(name, value)
      bytesLeft -= name.length + value.length
    }
  }
  return meta
}

async function readSized(bytes: ByteReader, sizeMax: number): Promise<Buffer> {
  const size = await readLong(bytes)
  if (size < 0 || size > sizeMax) throw new Error(`claims a part of ${size} bytes`)
  return bytes.read(size)
}

const longBytesMax = 10

/** A long as Avro writes it: seven bits at a time, the sign in the lowest. Rounded beyond 2^53, and then refused anyway. */
async function readLong(bytes: ByteReader): Promise<number> {
  const next = await bytes.peek(longBytesMax)
  const last = next.findIndex(byte => byte < 0x80)
  if (last < 0 && next.length === longBytesMax) throw new Error('holds a number of more than 64 bits')
  const digits = await bytes.read(last < 0 ? next.length + 1 : last + 1)
  const zigzag = digits.reduceRight((value, byte) => value * 128n + BigInt(byte & 0x7f), 0n)
  return Number(zigzag % 2n === 0n ? zigzag / 2n : -(zigzag + 1n) / 2n)
}

function parseSchema(schema: Buffer | undefined): unknown {
  if (!schema) throw new Error('has no schema')
  if (!isUtf8(schema)) throw new Error('has a schema that is not UTF-8')
  try {
    return JSON.parse(schema.toString())
  } catch (cause) {
    throw new Error(`has a schema that is not JSON: ${messageOf(cause)}`, { cause })
  }
}

/** Whatever goes wrong, as an `ArchiveError` of the place, said of `subject`. */
async function at<T>(path: string, place: ArchivePlace, subject: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof ArchiveError) throw cause
    const reason = cause instanceof CutOff ? `is cut off: ${cause.message}` : messageOf(cause)
    throw new ArchiveError(path, place, `${subject} ${reason}`, cause)
  }
}
