/** What kafkajs makes of the answer to a fetch, after our repairs. */
import { expect, test } from 'vitest'
import { batchBytesMax } from '../../../../../services/log/kafka/repairs/codecs.ts'
import { readAnswer, writeBatch } from '../../../../support/kafka/record-batch.ts'

const small = { key: Buffer.from('key'), value: Buffer.from('value') }

test('each partition of an answer is read to its end', async () => {
  const batch = await writeBatch({ records: [small, small] })
  const read = await readAnswer([batch, Buffer.alloc(0), Buffer.concat([batch, batch])])
  expect(read.map(messages => messages.length)).toEqual([2, 0, 4])
})

test('messages in a format before Kafka 0.11 are refused: nothing is skipped silently', async () => {
  const old = await writeBatch({ records: [small] })
  old.writeInt8(1, 16)
  await expect(readAnswer([old])).rejects.toThrow('a format before Kafka 0.11')
})

test('all partitions of an answer share its bounds, and what is left is read from the next answer', async () => {
  const large = Array(6).fill({ key: null, value: Buffer.alloc(batchBytesMax / 10) })
  const batch = await writeBatch({ records: large, compression: 'zstd' })
  expect((await readAnswer([batch, batch])).map(messages => messages.length)).toEqual([6, 0])
  expect((await readAnswer([batch])).map(messages => messages.length)).toEqual([6])
})
