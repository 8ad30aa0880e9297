/**
 * Opens a file of archived events: detects its kind by its content, and decompresses gzip. The file's name does not matter.
 */
import { type FileHandle, open, stat } from 'node:fs/promises'
import { pipeline, Readable } from 'node:stream'
import { createGunzip, type Gunzip } from 'node:zlib'
import { messageOf } from '../../shared/message-of.ts'
import { type ByteReader, createByteReader } from './bytes.ts'
import { ArchiveError } from './error.ts'

export type ArchiveKind = 'ndjson' | 'avro'

export interface ArchiveFile {
  path: string
  kind: ArchiveKind
  /** Its size on disk, in bytes. */
  size: number
  bytes: ByteReader
  close(): Promise<void>
}

export const containerMagic = Buffer.from('Obj\x01', 'latin1')
const gzipMagic = Buffer.from([0x1f, 0x8b])
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])
const whitespace: ReadonlySet<number> = new Set(Buffer.from(' \t\r\n'))
const openingBrace = 0x7b

const readBytes = 256 * 1024
// Blank lines may come before the first event. If there are more than this, reading the first line reports it.
const kindBytes = 4 * 1024

/** Opens a file. `onBytes` is called with the size of each read. Throws `ArchiveError`. */
export async function openArchiveFile(
  path: string,
  onBytes: (count: number) => void = () => undefined,
): Promise<ArchiveFile> {
  const { handle, size } = await openFile(path)
  try {
    const raw = chunksOf(path, handle, onBytes)
    const chunks = (await isGzip(path, handle)) ? gunzipped(path, raw, size) : raw
    const bytes = createByteReader(chunks)
    const kind = kindOf(path, await bytes.peek(kindBytes))
    const close = async (): Promise<void> => {
      await chunks.return(undefined)
      await handle.close()
    }
    return { path, kind, size, bytes, close }
  } catch (cause) {
    await handle.close()
    throw cause
  }
}

async function openFile(path: string): Promise<{ handle: FileHandle; size: number }> {
  try {
    // A pipe can be read only once, and opening one may block for ever. So it is checked before it is opened.
    const found = await stat(path)
    if (found.isDirectory()) throw new Error('it is a directory')
    if (!found.isFile()) throw new Error('it is not a regular file, but it has to be read more than once')
    return { handle: await open(path), size: found.size }
  } catch (cause) {
    throw new ArchiveError(path, {}, `cannot be opened: ${systemReason(cause)}`, cause)
  }
}

function systemReason(cause: unknown): string {
  switch (codeOf(cause)) {
    case 'ENOENT':
      return 'there is no such file'
    case 'EACCES':
      return 'permission is denied'
    default:
      return messageOf(cause)
  }
}

function codeOf(cause: unknown): string | undefined {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : undefined
}

async function isGzip(path: string, handle: FileHandle): Promise<boolean> {
  const start = Buffer.alloc(gzipMagic.length)
  const { bytesRead } = await readSome(path, handle, start, 0)
  return start.subarray(0, bytesRead).equals(gzipMagic)
}

function kindOf(path: string, start: Buffer): ArchiveKind {
  if (start.length === 0) throw new ArchiveError(path, {}, 'is empty')
  if (start.subarray(0, containerMagic.length).equals(containerMagic)) return 'avro'
  const isMarked = start.subarray(0, byteOrderMark.length).equals(byteOrderMark)
  const text = isMarked ? start.subarray(byteOrderMark.length) : start
  const first = text.find(byte => !whitespace.has(byte))
  if (first === undefined || first === openingBrace) return 'ndjson'
  const hex = start.subarray(0, containerMagic.length).toString('hex')
  throw new ArchiveError(
    path,
    {},
    `is neither NDJSON nor an Avro object container file: it begins with 0x${hex}`,
  )
}

async function* chunksOf(
  path: string,
  handle: FileHandle,
  onBytes: (count: number) => void,
): AsyncGenerator<Buffer> {
  for (;;) {
    const { bytesRead, buffer } = await readSome(path, handle, Buffer.allocUnsafe(readBytes), null)
    if (bytesRead === 0) return
    onBytes(bytesRead)
    yield buffer.subarray(0, bytesRead)
  }
}

async function readSome(
  path: string,
  handle: FileHandle,
  into: Buffer,
  position: number | null,
): Promise<{ bytesRead: number; buffer: Buffer }> {
  try {
    return await handle.read(into, 0, into.length, position)
  } catch (cause) {
    throw new ArchiveError(path, {}, `cannot be read: ${messageOf(cause)}`, cause)
  }
}

async function* gunzipped(path: string, raw: AsyncGenerator<Buffer>, size: number): AsyncGenerator<Buffer> {
  const gunzip: Gunzip = createGunzip()
  // The loop below throws the error. Without this callback, it would be an uncaught exception as well.
  pipeline(Readable.from(raw, { objectMode: false }), gunzip, () => undefined)
  try {
    for await (const chunk of gunzip) yield chunk as Buffer
  } catch (cause) {
    if (!codeOf(cause)?.startsWith('Z_')) throw cause
    throw new ArchiveError(path, {}, `its gzip data are damaged or cut off: ${messageOf(cause)}`, cause)
  }
  // zlib ignores what follows a zero byte after the gzip data, but more events may follow there.
  if (gunzip.bytesWritten < size) {
    const { bytesWritten } = gunzip
    throw new ArchiveError(path, {}, `has other data after its gzip data, at byte ${bytesWritten}`)
  }
}
