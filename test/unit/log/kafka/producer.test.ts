import { expect, test } from 'vitest'
import { requestsOf } from '../../../../services/log/kafka/producer.ts'
import { headersMax } from '../../../../services/log/kafka/record.ts'
import { batchPartsMax } from '../../../../services/log/kafka/repairs/record-batches.ts'

test('no request has more records and headers than a batch that can be read, however small they are', () => {
  const headers = { h: Array<string>(headersMax).fill('') }
  const messages = Array.from({ length: 2_000 }, () => ({
    topic: 'rejects',
    message: { key: null, value: null, headers },
  }))
  const requests = [...requestsOf(messages)]
  const counts = requests.map(request => request.flatMap(({ messages }) => messages).length)
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(2_000)
  expect(Math.max(...counts) * (headersMax + 10)).toBeLessThan(batchPartsMax)
})
