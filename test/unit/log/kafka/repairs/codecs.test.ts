import fc from 'fast-check'
import { compressFrame } from 'lz4-napi'
import snappy from 'snappy'
import { expect, test } from 'vitest'
import { UnpackedTooLarge, unpack } from '../../../../../services/log/kafka/repairs/codecs.ts'

// Some parts repeat, so that there is something to compress.
const data = fc
  .array(fc.tuple(fc.uint8Array({ maxLength: 50 }), fc.integer({ min: 1, max: 3_000 })), { maxLength: 12 })
  .map(parts => Buffer.concat(parts.flatMap(([part, times]) => Array<Uint8Array>(times).fill(part))))
const blockBytesMax = 4 * 1024 ** 2

test('Snappy data that fit exactly are unpacked, and with a byte less of room they are not', async () => {
  await fc.assert(
    fc.asyncProperty(data, async bytes => {
      const packed = await snappy.compress(bytes)
      expect(await unpack('snappy', packed, bytes.length)).toEqual(bytes)
      await expect(unpack('snappy', packed, bytes.length - 1)).rejects.toThrow(UnpackedTooLarge)
    }),
    { numRuns: 100 },
  )
})

test('LZ4 data are unpacked if their blocks fit, and not if there is one block more', async () => {
  await fc.assert(
    fc.asyncProperty(data, fc.boolean(), async (bytes, hasChecksums) => {
      const options = { contentChecksum: hasChecksums, blockChecksums: hasChecksums }
      expect(await unpack('lz4', await compressFrame(bytes, options), blockBytesMax)).toEqual(bytes)
    }),
    { numRuns: 100 },
  )
  const full = await compressFrame(Buffer.alloc(2 * blockBytesMax))
  expect(await unpack('lz4', full, 2 * blockBytesMax)).toHaveLength(2 * blockBytesMax)
  const more = await compressFrame(Buffer.alloc(2 * blockBytesMax + 1))
  await expect(unpack('lz4', more, 2 * blockBytesMax)).rejects.toThrow(UnpackedTooLarge)
})

test('an LZ4 block cannot unpack to more than its frame says', async () => {
  const [small, large] = [await compressFrame(Buffer.from('a')), await compressFrame(Buffer.alloc(3_000_000))]
  const headBytes = 7
  // A frame of blocks of 64 KiB, with a block of 3 MB.
  const lying = Buffer.concat([small.subarray(0, headBytes), large.subarray(headBytes)])
  await expect(unpack('lz4', lying, 1024 ** 2)).rejects.not.toThrow(UnpackedTooLarge)
})
