import { existsSync, mkdirSync, readdirSync, readlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import avro from 'avsc'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createStateEncoder, schemas, unframe } from '../../../../contracts/events/codec.ts'
import { type ChangeEvent, type EventType, eventTypes } from '../../../../contracts/events/event.ts'
import { formatEvent } from '../../../../contracts/events/ndjson.ts'
import {
  type ArchiveError,
  type ArchiveProgress,
  inspectArchive,
  readArchive,
} from '../../../../services/rebuild/archive/archive.ts'
import { worldEvents } from '../../../support/arbitraries.ts'
import { changeEvent } from '../../events/event-arbitraries.ts'
import {
  type ArchiveDirectory,
  codecNames,
  containerFile,
  containerHeader,
  createArchiveDirectory,
  eventsOf,
  faultIn,
  keysOf,
  pledgeState,
} from './files.ts'

interface RecordSchema {
  namespace: string
  fields: { name: string; type: unknown; default?: unknown }[]
}

let directory: ArchiveDirectory

beforeAll(() => {
  directory = createArchiveDirectory()
})

afterAll(() => directory.remove())

const events = fc.oneof(worldEvents(), fc.array(changeEvent, { minLength: 1, maxLength: 20 }))
const isZipped = fc.boolean()

describe('what was archived is read back as the same events, in order', () => {
  test('from NDJSON, tombstones included, with gzip or without', async () => {
    await fc.assert(
      fc.asyncProperty(
        events,
        fc.constantFrom('\n', '\r\n', '\n\n'),
        fc.boolean(),
        isZipped,
        async (all, lineEnd, isEnded, zipped) => {
          const text = all.map(formatEvent).join(lineEnd) + (isEnded ? lineEnd : '')
          const path = directory.file('events', zip(Buffer.from(text || '\n'), zipped))
          expect(await eventsOf(path)).toEqual(all)
        },
      ),
    )
  })

  test.each(codecNames)('from container files with the codec %s, with gzip or without', async codec => {
    await fc.assert(
      fc.asyncProperty(events, fc.integer({ min: 1, max: 5 }), isZipped, async (all, blockSize, zipped) => {
        const files = eventTypes.map(type => {
          const states = statesOf(type, all)
          const blocks = states.flatMap((_, i) =>
            i % blockSize === 0 ? [states.slice(i, i + blockSize).map(({ data }) => data)] : [],
          )
          const content = containerFile(blocks, { codec, schema: schemas[type] })
          return directory.file(type, zip(content, zipped))
        })
        expect(await eventsOf(...files)).toEqual(eventTypes.flatMap(type => statesOf(type, all)))
      }),
    )
  })

  test('from files that Node and Python libraries wrote', async () => {
    // Three pledges, written by fastavro 1.13.1 and avro 1.12.2 (PyPI) in another namespace.
    for (const name of ['fastavro-snappy.avro', 'apache-deflate.avro']) {
      const read = await eventsOf(fileURLToPath(new URL(`archives/${name}`, import.meta.url)))
      expect(read.map(({ key }) => key)).toEqual(['c1/p1', 'c1/p2', 'c1/p3'])
      expect(read[2]?.data).toMatchObject({ version: 2n ** 53n + 3n, status: 'CANCELLED', reward_id: null })
    }
    const encoder = new avro.streams.BlockEncoder(schemas.pledge as avro.Schema, { codec: 'deflate' })
    for (let n = 1; n <= 5_000; n++) encoder.write(pledgeState(n))
    encoder.end()
    const chunks: Buffer[] = []
    for await (const chunk of encoder) chunks.push(chunk as Buffer)
    const keys = await keysOf(directory.file('avsc.avro', Buffer.concat(chunks)))
    expect(keys).toEqual(Array.from({ length: 5_000 }, (_, i) => `c1/p${i + 1}`))
  })

  test('from gzip in several members, as appending to a gzip file creates it', async () => {
    const lines = [pledge(1), pledge(2)].map(event => gzipSync(`${formatEvent(event)}\n`))
    expect(await keysOf(directory.file('members', Buffer.concat(lines)))).toEqual(['c1/p1', 'c1/p2'])
  })

  test('from several files of any kind, with any names', async () => {
    const first = directory.file('a.avro', `\ufeff\n${formatEvent(pledge(1))}\n`)
    const second = directory.file(
      'b.ndjson',
      gzipSync(containerFile([[pledgeState(2)]], { codec: 'snappy' })),
    )
    expect(await inspectArchive([first, second])).toMatchObject({
      files: [
        { path: first, kind: 'ndjson' },
        { path: second, kind: 'avro' },
      ],
    })
    expect(await keysOf(first, second, first)).toEqual(['c1/p1', 'c1/p2', 'c1/p1'])
  })
})

describe("a container file's schema", () => {
  const schema = schemas.pledge as RecordSchema

  test('may be a newer one of another namespace: an added field is ignored, a removed one has its default', async () => {
    const extra = { name: 'note', type: { type: 'array', items: 'string' }, default: [] }
    const fields = [extra, ...schema.fields.filter(({ name }) => name !== 'reward_id')]
    for (const namespace of ['com.example.cdc', '']) {
      const newer = { ...schema, namespace, fields }
      const content = containerFile([[{ ...pledgeState(1), note: ['x', 'y'] }]], {
        codec: 'deflate',
        schema: newer,
      })
      const [event] = await eventsOf(directory.file('newer', content))
      expect(event).toEqual(pledge(1))
    }
  })

  test.each<[unknown, string]>([
    [
      { ...schema, name: 'Refund' },
      ': its schema is the record "Refund"; the known records are Campaign, Pledge, ApiKey',
    ],
    ['string', ': its schema is not a record; the known records are Campaign, Pledge, ApiKey'],
    [
      { ...schema, fields: schema.fields.filter(({ name }) => name !== 'version') },
      ': its schema cannot be read as a pledge: no matching field for default-less pledgeview.events.Pledge.version',
    ],
  ])('that is not ours is named before anything is read (%#)', async (unknown, message) => {
    const path = directory.file('unknown', containerHeader(unknown, 'null'))
    await expect(inspectArchive([path])).rejects.toThrow(`${path}${message}`)
  })

  test('is not read if the codec is unknown', async () => {
    const path = directory.file('codec', containerHeader(schema, 'bzip2'))
    await expect(inspectArchive([path])).rejects.toThrow(
      `${path}: its header names the codec "bzip2"; the known codecs are null, deflate, snappy`,
    )
  })
})

describe('a bad event stops the reading', () => {
  test('with file, line, field and reason in NDJSON', async () => {
    const bad = formatEvent(pledge(3, { amount_minor: -1 }))
    const path = directory.file('bad', `${formatEvent(pledge(1))}\n\n${bad}\n${formatEvent(pledge(4))}\n`)
    expect(await faultIn(path)).toBe(':3: data.amount_minor -1 is negative')
    const cut = directory.file('cut', formatEvent(pledge(1)).slice(0, -1))
    expect(await faultIn(cut)).toMatch(/^:1: the line is the last one, has no line end and seems cut off/)
    const long = directory.file('long', `{${' '.repeat(1024 ** 2)}\n`)
    expect(await faultIn(long)).toBe(':1: the line is 1,048,577 bytes long; 1,048,576 are allowed')
  })

  test('with file, object, field and reason in a container file', async () => {
    const blocks = [[pledgeState(1), pledgeState(2)], [{ ...pledgeState(3), campaign_id: 'a/b' }]]
    const path = directory.file('bad', containerFile(blocks, { codec: 'snappy' }))
    expect(await faultIn(path)).toBe(': object 3: campaign_id holds a slash')
    await expect(keysOf(path)).rejects.toMatchObject({
      path,
      place: { block: 2, object: 3 },
    } satisfies Partial<ArchiveError>)
  })
})

describe('a file that is not an archive is named before anything is read', () => {
  test.each<[string, (inside: string) => string, string]>([
    ['missing', inside => join(inside, 'nowhere'), ': cannot be opened: there is no such file'],
    ['a directory', inside => inside, ': cannot be opened: it is a directory'],
    [
      'a device',
      () => '/dev/null',
      ': cannot be opened: it is not a regular file, but it has to be read more',
    ],
    ['empty', () => directory.file('empty', ''), ': is empty'],
    ['of another kind', () => directory.file('parquet', 'PAR1...'), ': is neither NDJSON nor an Avro object'],
    [
      'gzip twice',
      () => directory.file('twice', gzipSync(gzipSync('{}'))),
      ': is neither NDJSON nor an Avro',
    ],
  ])('%s', async (_, bad, message) => {
    const good = directory.file('good', formatEvent(pledge(1)))
    const path = bad(dirname(good))
    await expect(readArchive([good, path], {}).next()).rejects.toThrow(`${path}${message}`)
  })
})

describe('reading', () => {
  test('returns pieces of bounded size, and reports its progress', async () => {
    const lines = Array.from({ length: 5_000 }, (_, n) => `${formatEvent(pledge(n))}\n`).join('')
    const wide = `${formatEvent(pledge(0, { backer_id: 'b'.repeat(900_000) }))}\n`
    const paths = [directory.file('rows', gzipSync(lines)), directory.file('bytes', wide.repeat(7))]
    const seen: ArchiveProgress[] = []
    const sizes: number[] = []
    for await (const piece of readArchive(paths, { onProgress: progress => seen.push(progress) })) {
      sizes.push(piece.length)
    }
    expect(sizes).toEqual([2_000, 2_000, 1_005, 2])
    const { bytesTotal } = await inspectArchive(paths)
    expect(seen.map(({ records }) => records)).toEqual([2_000, 4_000, 5_005, 5_007])
    expect(seen.at(-1)).toEqual({ bytesDone: bytesTotal, bytesTotal, records: 5_007 })
    expect(seen.map(({ bytesDone }) => bytesDone)).toEqual(
      seen.map(s => s.bytesDone).toSorted((a, b) => a - b),
    )
  })

  test('frames with the given encoder', async () => {
    const path = directory.file('framed', formatEvent(pledge(1)))
    const encode = createStateEncoder({ campaign: 71, pledge: 72, 'api-key': 73 })
    const { value: piece } = await readArchive([path], { encode }).next()
    expect(unframe(piece?.[0]?.value)).toMatchObject({ schemaId: 72 })
  })

  test('ends with the reason of an aborted signal', async () => {
    const path = directory.file('many', `${formatEvent(pledge(1))}\n`.repeat(5_000))
    const controller = new AbortController()
    const reading = readArchive([path], { signal: controller.signal })
    expect((await reading.next()).value).toHaveLength(2_000)
    controller.abort(new Error('stopped by hand'))
    await expect(reading.next()).rejects.toThrow('stopped by hand')
  })

  test.skipIf(!existsSync('/proc/self/fd'))('leaves no file open, however it ends', async () => {
    const inside = join(dirname(directory.file('any', '')), 'open')
    mkdirSync(inside)
    const many = `${formatEvent(pledge(1))}\n`.repeat(20_000)
    for (const content of [Buffer.from(many), gzipSync(many), gzipSync(many).subarray(0, -9)]) {
      const path = directory.file('open/many', content)
      for await (const _ of readArchive([path], {})) break
      await keysOf(path).catch(() => undefined)
      await inspectArchive([path])
    }
    expect(openFiles().filter(path => path.startsWith(inside))).toEqual([])
  })
})

function openFiles(): string[] {
  return readdirSync('/proc/self/fd').flatMap(fd => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)]
    } catch {
      // One descriptor belongs to the listing itself.
      return []
    }
  })
}

function zip(content: Buffer, zipped: boolean): Buffer {
  return zipped ? gzipSync(content) : content
}

function statesOf(type: EventType, all: readonly ChangeEvent[]): ChangeEvent[] {
  return all.filter(event => event.type === type && event.data !== null)
}

function pledge(n: number, changes: object = {}): ChangeEvent {
  return { type: 'pledge', key: `c1/p${n}`, data: { ...pledgeState(n), ...changes } }
}
