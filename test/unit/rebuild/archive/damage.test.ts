import { truncateSync } from 'node:fs'
import { deflateRawSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import snappy from 'snappy'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { encodeState, schemas } from '../../../../contracts/events/codec.ts'
import { keyOf } from '../../../../contracts/events/event.ts'
import { formatEvent } from '../../../../contracts/events/ndjson.ts'
import { ArchiveError, readArchive } from '../../../../services/rebuild/archive/archive.ts'
import { recordOf } from '../../../../services/shared/event-log/event-records.ts'
import type { NewRecord } from '../../../../services/shared/event-log/port.ts'
import {
  type ArchiveDirectory,
  type CodecName,
  codecNames,
  containerBlock,
  containerFile,
  containerHeader,
  containerParts,
  createArchiveDirectory,
  faultIn,
  keysOf,
  long,
  pledgeState,
  sync,
} from './files.ts'

let directory: ArchiveDirectory

beforeAll(() => {
  directory = createArchiveDirectory()
})

afterAll(() => directory.remove())

const states = [1, 2, 3, 4, 5].map(pledgeState)
const blocks = [states.slice(0, 2), states.slice(2, 3), states.slice(3)]
const expected = states.map(data =>
  textOf(recordOf({ type: 'pledge', key: keyOf({ type: 'pledge', data }), data }, encodeState)),
)

interface Outcome {
  records: string[]
  fault?: string
}

/** What is read before the first error. Throws on a failure that is not an `ArchiveError`. */
async function outcomeOf(path: string): Promise<Outcome> {
  const outcome: Outcome = { records: [] }
  try {
    for await (const piece of readArchive([path], {})) outcome.records.push(...piece.map(textOf))
    return outcome
  } catch (cause) {
    if (!(cause instanceof ArchiveError)) throw cause
    return { ...outcome, fault: cause.message }
  }
}

/** A whole record as text, for comparison. */
function textOf({ topic, key, value }: NewRecord): string {
  return [topic, key, value].map(part => Buffer.from(part ?? '').toString('latin1')).join(' ')
}

/** Damage may be found or have no effect. But no record may be read that was not in the file. */
function expectNothingElse({ records, fault }: Outcome): void {
  expect(records).toEqual(fault === undefined ? expected : expected.slice(0, records.length))
}

describe('a file that was cut off', () => {
  test.each(codecNames)('is an error, or a prefix if it ends between two blocks: codec %s', async codec => {
    const parts = containerParts(blocks, { codec })
    const path = directory.file('cut', Buffer.concat(parts))
    // How much was read of a file that ends after so many bytes.
    const wholes = new Map<number, string[]>()
    let end = 0
    for (const [i, part] of parts.entries()) {
      end += part.length
      wholes.set(end, expected.slice(0, blocks.slice(0, i).flat().length))
    }
    for (let length = end; length > 0; length--) {
      truncateSync(path, length)
      const { records, fault } = await outcomeOf(path)
      const whole = wholes.get(length)
      if (whole) expect(records, `${length} bytes`).toEqual(whole)
      expect(fault === undefined, `${length} bytes: ${fault}`).toBe(whole !== undefined)
    }
  })

  test('names the place: a block, or the header', async () => {
    const [header, ...rest] = containerParts(blocks, { codec: 'null' })
    const content = Buffer.concat([header ?? Buffer.alloc(0), ...rest])
    expect(await faultIn(directory.file('a', content.subarray(0, -20)))).toBe(
      ': block 3: it is cut off: the file ends within it',
    )
    expect(await faultIn(directory.file('b', content.subarray(0, 30)))).toBe(
      ': its header is cut off: the file ends within it',
    )
  })

  test('is an error at any length of a gzip file', async () => {
    const lines = states.map(data => `${formatEvent({ type: 'pledge', key: '', data })}\n`).join('')
    const zipped = gzipSync(lines)
    for (let length = zipped.length - 1; length > 2; length--) {
      const { fault } = await outcomeOf(directory.file('zipped', zipped.subarray(0, length)))
      expect(fault, `${length} bytes`).toContain(
        'its gzip data are damaged or cut off: unexpected end of file',
      )
    }
  })
})

describe('damage', () => {
  test('of any bit after the header never gives another record if the codec has a checksum (snappy)', async () => {
    const [header = Buffer.alloc(0), ...rest] = containerParts(blocks, { codec: 'snappy' })
    const whole = Buffer.concat([header, ...rest])
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: header.length * 8, max: whole.length * 8 - 1 }), async bit => {
        expectNothingElse(await outcomeOf(directory.file('flipped', flipped(whole, bit))))
      }),
      { numRuns: 500 },
    )
  })

  test('of any bit of gzip never gives another record', async () => {
    const whole = gzipSync(containerFile(blocks, { codec: 'null' }))
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: whole.length * 8 - 1 }), async bit => {
        expectNothingElse(await outcomeOf(directory.file('flipped', flipped(whole, bit))))
      }),
      { numRuns: 500 },
    )
  })

  test.each(codecNames)('of count, size or sync marker is an error with any codec: %s', async codec => {
    const [header = Buffer.alloc(0), block = Buffer.alloc(0), ...rest] = containerParts(blocks, { codec })
    const frame = [...Array(2 * 8).keys(), ...Array(sync.length * 8).keys()].map((bit, i) =>
      i < 2 * 8 ? bit : (block.length - sync.length) * 8 + bit,
    )
    for (const bit of frame) {
      const content = Buffer.concat([header, flipped(block, bit), ...rest])
      const { records, fault } = await outcomeOf(directory.file('frame', content))
      expect(fault, `bit ${bit}`).toBeDefined()
      expect(records).toEqual([])
    }
  })

  test.each<[string, () => Buffer, string]>([
    ['bytes behind the objects', () => withBlock(1, twoObjects()), 'block 1: is damaged: '],
    [
      'objects that are not there',
      () => withBlock(3, twoObjects()),
      "object 3: does not match the file's schema",
    ],
    ['a negative count', () => withBlock(-1, twoObjects()), 'block 1: it claims -1 objects'],
    [
      'a missing sync marker',
      () => Buffer.concat([withBlock(2, twoObjects()), Buffer.alloc(80)]),
      'block 2: it is damaged',
    ],
    [
      'a number without end',
      () => Buffer.concat([withBlock(2, twoObjects()), Buffer.alloc(20, 0xff)]),
      'block 2: it holds a number of more than 64 bits',
    ],
    ['a wrong checksum', badChecksum, 'block 1: it cannot be decompressed: its checksum is wrong'],
    [
      'snappy without a checksum',
      () => withBlock(1, Buffer.alloc(3), 'snappy'),
      'block 1: it cannot be decompressed: its snappy data are cut off',
    ],
    [
      'other bytes than deflate',
      () => withBlock(1, Buffer.alloc(9, 0xff), 'deflate'),
      'block 1: it cannot be decompressed: invalid',
    ],
    ['no schema', () => Buffer.concat([Buffer.from('Obj\x01\0'), sync]), 'its header has no schema'],
  ])('is named with its block: %s', async (_, content, message) => {
    expect(await faultIn(directory.file('damaged', content()))).toContain(`: ${message}`)
  })

  test('is named if other data follow gzip, which zlib ignores', async () => {
    const line = gzipSync(`${formatEvent({ type: 'pledge', key: '', data: pledgeState(1) })}\n`)
    const path = directory.file('padded', Buffer.concat([line, Buffer.alloc(1), line]))
    expect(await faultIn(path)).toBe(`: has other data after its gzip data, at byte ${line.length}`)
  })
})

describe('memory is bounded', () => {
  const mebibyte = 1024 ** 2

  test.each<[string, () => Buffer, string]>([
    [
      'deflate',
      () => withBlock(1, deflateRawSync(Buffer.alloc(64 * mebibyte + 1)), 'deflate'),
      'it is larger than 64 MiB',
    ],
    [
      'snappy',
      () =>
        withBlock(1, Buffer.concat([snappy.compressSync(Buffer.alloc(64 * mebibyte + 1)), sync]), 'snappy'),
      'it is larger than 64 MiB',
    ],
    [
      'null',
      () => Buffer.concat([containerHeader(schemas.pledge, 'null'), long(1), long(64 * mebibyte + 1)]),
      'claims a part of 67108865 bytes',
    ],
  ])('for a block that is larger than 64 MiB decompressed: codec %s', async (_, content, message) => {
    expect(await faultIn(directory.file('large', content()))).toContain(message)
  })

  test('for a header that claims to be endless', async () => {
    const part = Buffer.concat([long(5 * mebibyte), Buffer.alloc(5 * mebibyte)])
    const large = directory.file('part', Buffer.concat([Buffer.from('Obj\x01'), long(1), part]))
    expect(await faultIn(large)).toContain('its header claims a part of 5242880 bytes')
    const many = Buffer.concat([Buffer.from('Obj\x01'), long(2 ** 40)])
    expect(await faultIn(directory.file('many', many))).toContain('its header claims more than 1000 entries')
  })

  test('for gzip that becomes a hundred megabytes', async () => {
    const zipped = gzipSync(Buffer.concat([Buffer.from('{'), Buffer.alloc(100 * mebibyte, ' ')]))
    const path = directory.file('bomb', zipped)
    const before = process.memoryUsage().arrayBuffers
    let most = 0
    const timer = setInterval(() => {
      most = Math.max(most, process.memoryUsage().arrayBuffers - before)
    }, 1)
    try {
      expect(await faultIn(path)).toBe(':1: the line is 104,857,601 bytes long; 1,048,576 are allowed')
    } finally {
      clearInterval(timer)
    }
    expect(most).toBeLessThan(32 * mebibyte)
  })
})

test('bytes after the deflate data of a block are ignored, as the Python library leaves some', async () => {
  const stored = Buffer.concat([deflateRawSync(twoObjects()), Buffer.from([1, 2, 3])])
  expect(await keysOf(directory.file('python', withBlock(2, stored, 'deflate')))).toEqual(['c1/p1', 'c1/p2'])
})

/** A file with one block of the given bytes. */
function withBlock(count: number, bytes: Buffer, codec: CodecName = 'null'): Buffer {
  return Buffer.concat([containerHeader(schemas.pledge, codec), containerBlock(count, bytes)])
}

/** Two objects, one after the other. */
function twoObjects(): Buffer {
  const [, block = Buffer.alloc(0)] = containerParts([states.slice(0, 2)], { codec: 'null' })
  const frameBytes = long(2).length + long(block.length).length
  return block.subarray(frameBytes, -sync.length)
}

function badChecksum(): Buffer {
  const compressed = snappy.compressSync(twoObjects())
  return withBlock(2, Buffer.concat([compressed, Buffer.alloc(4)]), 'snappy')
}

function flipped(bytes: Buffer, bit: number): Buffer {
  const copy = Buffer.from(bytes)
  copy.writeUInt8(copy.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
  return copy
}
