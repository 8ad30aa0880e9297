import fc from 'fast-check'
import { compressFrame } from 'lz4-napi'
import snappy from 'snappy'
import { expect, test } from 'vitest'
import { unpack } from '../../../../services/log/kafka/codecs.ts'
import { lz4Length, snappyLength } from '../../../../services/log/kafka/unpacked-length.ts'

// Some parts repeat, so that there is something to compress.
const data = fc
  .array(fc.tuple(fc.uint8Array({ maxLength: 50 }), fc.integer({ min: 1, max: 3_000 })), { maxLength: 12 })
  .map(parts => Buffer.concat(parts.flatMap(([part, times]) => Array<Uint8Array>(times).fill(part))))

test('the length of LZ4 data is exact, and never too low if it is estimated', async () => {
  await fc.assert(
    fc.asyncProperty(data, fc.boolean(), async (bytes, hasChecksums) => {
      const options = { contentChecksum: hasChecksums, blockChecksums: hasChecksums }
      const frame = await compressFrame(bytes, options)
      expect(lz4Length(frame, -1)).toBe(bytes.length)
      expect(lz4Length(frame, Number.POSITIVE_INFINITY)).toBeGreaterThanOrEqual(bytes.length)
      expect(lz4Length(Buffer.concat([frame, frame]), -1)).toBe(2 * bytes.length)
    }),
    { numRuns: 200 },
  )
})

test('the length of Snappy data is exact', async () => {
  await fc.assert(
    fc.asyncProperty(data, async bytes => {
      expect(snappyLength(await snappy.compress(bytes))).toBe(bytes.length)
    }),
    { numRuns: 200 },
  )
})

test('what fits exactly is unpacked, and one byte more is not', async () => {
  const bytes = Buffer.alloc(3_000_000)
  const frame = await compressFrame(bytes)
  expect(await unpack('lz4', frame, bytes.length)).toEqual(bytes)
  await expect(unpack('lz4', frame, bytes.length - 1)).rejects.toThrow(
    expect.objectContaining({ name: 'UnpackedTooLarge' }),
  )
})

test('an LZ4 block cannot unpack to more than its frame says', async () => {
  const [small, large] = [await compressFrame(Buffer.from('a')), await compressFrame(Buffer.alloc(3_000_000))]
  const headBytes = 7
  // A frame of blocks of 64 KiB, with a block of 3 MB.
  const lying = Buffer.concat([small.subarray(0, headBytes), large.subarray(headBytes)])
  expect(lz4Length(lying, Number.POSITIVE_INFINITY)).toBe(64 * 1024)
  await expect(unpack('lz4', lying, 1024 ** 2)).rejects.toThrow()
})
