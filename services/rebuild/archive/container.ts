/**
 * Avro object container files: a header with the writer's schema, then blocks of objects. Each block ends with the file's
 * sync marker.
 *
 * avsc has a decoder for these files, but it treats a file that is cut off as complete, and ignores bytes that are left in a
 * block after its objects. Here both are errors. Only a file that was cut off exactly between two blocks cannot be told from
 * a complete one. Memory is bounded, whatever a file claims.
 *
 * Source: Avro 1.11 specification, "Object Container Files".
 */
import { isUtf8 } from 'node:buffer'
import { messageOf } from '../../shared/message-of.ts'
import { type ByteReader, CutOff } from './bytes.ts'
import { blockBytesMax, codecs, type Decompress } from './codecs.ts'
import { ArchiveError, type ArchivePlace } from './error.ts'
import { containerMagic } from './file.ts'

export interface ContainerHeader {
  /** The writer's schema, parsed from JSON. */
  schema: unknown
  decompress: Decompress
  sync: Buffer
}

/** Several objects, one after the other. */
export interface ContainerBlock {
  /** From 1. */
  number: number
  objectCount: number
  avroBinary: Buffer
}

const syncBytes = 16
const metaBytesMax = 4 * 1024 ** 2
const metaEntriesMax = 1_000

/** Reads the header, which tells whether the rest can be read. Throws `ArchiveError`. */
export async function readContainerHeader(path: string, bytes: ByteReader): Promise<ContainerHeader> {
  return at(path, {}, 'its header', async () => {
    await bytes.read(containerMagic.length)
    const meta = await readMeta(bytes)
    const sync = Buffer.from(await bytes.read(syncBytes))
    const codec = meta.get('avro.codec')?.toString() ?? 'null'
    const decompress = codecs.get(codec)
    if (!decompress) {
      throw new Error(
        `names the codec ${JSON.stringify(codec)}; the known codecs are ${[...codecs.keys()].join(', ')}`,
      )
    }
    return { schema: parseSchema(meta.get('avro.schema')), decompress, sync }
  })
}

/** The blocks after the header, in order. Throws `ArchiveError`, naming the block. */
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

/** A map of bytes: groups of entries, each after its count. The count 0 ends the map. */
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

/** A long in Avro's encoding: seven bits at a time, the sign in the lowest bit. Rounded beyond 2^53, which is refused anyway. */
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

/** Turns any error into an `ArchiveError` of this place. `subject` begins its message. */
async function at<T>(path: string, place: ArchivePlace, subject: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof ArchiveError) throw cause
    const reason = cause instanceof CutOff ? `is cut off: ${cause.message}` : messageOf(cause)
    throw new ArchiveError(path, place, `${subject} ${reason}`, cause)
  }
}
