/** Creates files of archived events for tests, including damaged ones, and reads them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32, deflateRawSync } from 'node:zlib'
import avro from 'avsc'
import snappy from 'snappy'
import { compileSchema } from '../../../../contracts/events/avro-types.ts'
import { schemas } from '../../../../contracts/events/codec.ts'
import type { ChangeEvent, PledgeState } from '../../../../contracts/events/event.ts'
import { createDecoder } from '../../../../services/projector/ingest/decode.ts'
import { ArchiveError, readArchive } from '../../../../services/rebuild/archive/archive.ts'
import type { NewRecord } from '../../../../services/shared/event-log/port.ts'

export const codecNames = ['null', 'deflate', 'snappy'] as const
export type CodecName = (typeof codecNames)[number]

const stored: Readonly<Record<CodecName, (block: Buffer) => Buffer>> = {
  null: block => block,
  deflate: block => deflateRawSync(block),
  snappy(block) {
    const checksum = Buffer.alloc(4)
    checksum.writeUInt32BE(crc32(block))
    return Buffer.concat([snappy.compressSync(block), checksum])
  },
}

export const sync = Buffer.from('0123456789abcdef')

const metaType = avro.Type.forSchema({ type: 'map', values: 'bytes' })

export function long(value: number): Buffer {
  return avro.Type.forSchema('long').toBuffer(value)
}

export function containerHeader(schema: unknown, codec: string): Buffer {
  const meta = { 'avro.schema': Buffer.from(JSON.stringify(schema)), 'avro.codec': Buffer.from(codec) }
  return Buffer.concat([Buffer.from('Obj\x01'), metaType.toBuffer(meta), sync])
}

/** A block of bytes that are already compressed. */
export function containerBlock(count: number, bytes: Buffer): Buffer {
  return Buffer.concat([long(count), long(bytes.length), bytes, sync])
}

/** The parts of a container file: the header, then one block for each list of objects. */
export function containerParts(
  blocks: readonly (readonly unknown[])[],
  { codec, schema = schemas.pledge }: { codec: CodecName; schema?: object },
): Buffer[] {
  const type = compileSchema(schema)
  const parts = blocks.map(objects =>
    containerBlock(
      objects.length,
      stored[codec](Buffer.concat(objects.map(object => type.toBuffer(object)))),
    ),
  )
  return [containerHeader(schema, codec), ...parts]
}

export function containerFile(
  blocks: readonly (readonly unknown[])[],
  options: { codec: CodecName; schema?: object },
): Buffer {
  return Buffer.concat(containerParts(blocks, options))
}

export function pledgeState(n: number): PledgeState {
  return {
    pledge_id: `p${n}`,
    campaign_id: 'c1',
    backer_id: 'b1',
    version: n,
    changed_at: 1_790_000_000_000,
    status: 'ACTIVE',
    amount_minor: 100 * n,
    platform_amount_minor: 100 * n,
    reward_id: null,
  }
}

/** A directory for the files of a test. */
export interface ArchiveDirectory {
  /** Writes or replaces a file, and returns its path. */
  file(name: string, content: Buffer | string): string
  remove(): void
}

export function createArchiveDirectory(): ArchiveDirectory {
  const directory = mkdtempSync(join(tmpdir(), 'pledgeview-archive-'))
  return {
    file(name, content) {
      const path = join(directory, name)
      writeFileSync(path, content)
      return path
    },
    remove: () => rmSync(directory, { recursive: true }),
  }
}

export async function recordsOf(...paths: string[]): Promise<NewRecord[]> {
  const records: NewRecord[] = []
  for await (const piece of readArchive(paths, {})) records.push(...piece)
  return records
}

const decode = createDecoder()

/** The records as the projector would read them from the log. Throws on a record that it would reject. */
export async function eventsOf(...paths: string[]): Promise<ChangeEvent[]> {
  return (await recordsOf(...paths)).map(record => {
    const event = decode({ ...record, partition: 0, offset: 0, appendedAt: 0 })
    if ('reason' in event) throw new Error(event.reason)
    return { ...event }
  })
}

export async function keysOf(...paths: string[]): Promise<string[]> {
  return (await recordsOf(...paths)).map(({ key }) => Buffer.from(key ?? []).toString())
}

/** The message of the `ArchiveError` that reading throws, without the path at its beginning. */
export async function faultIn(path: string): Promise<string> {
  try {
    await recordsOf(path)
  } catch (cause) {
    if (cause instanceof ArchiveError && cause.message.startsWith(path)) {
      return cause.message.slice(path.length)
    }
    throw cause
  }
  throw new Error('all of it was read')
}
