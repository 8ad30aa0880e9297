import { randomBytes } from 'node:crypto'
import { compressFrame } from 'lz4-napi'
import { expect, test } from 'vitest'
import { TooMuch, unpack } from '../../../../../services/log/kafka/repairs/codecs.ts'

test.each([true, false])('LZ4 data are unpacked, with checksums or without: %s', async hasChecksums => {
  const options = { contentChecksum: hasChecksums, blockChecksums: hasChecksums }
  for (const bytes of [Buffer.from('a'), randomBytes(200_000)])
    expect(await unpack('lz4', await compressFrame(bytes, options), 1024 ** 2)).toEqual(bytes)
})

test('an LZ4 block cannot unpack to more than its frame says', async () => {
  const [small, large] = [await compressFrame(Buffer.from('a')), await compressFrame(Buffer.alloc(3_000_000))]
  const headBytes = 7
  // A frame of blocks of 64 KiB, with a block of 3 MB.
  const lying = Buffer.concat([small.subarray(0, headBytes), large.subarray(headBytes)])
  await expect(unpack('lz4', lying, 1024 ** 2)).rejects.not.toThrow(TooMuch)
})
