/** What kafkajs makes of the answer to a fetch, after our repairs. */
import { expect, test } from 'vitest'
import { batchBytesMax } from '../../../../../services/log/kafka/repairs/codecs.ts'
import { readAnswer, writeBatch } from '../../../../support/kafka/record-batch.ts'

const small = { key: Buffer.from('key'), value: Buffer.from('value') }

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
