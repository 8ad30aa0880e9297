import { expect, test } from 'vitest'
import { batchPartsMax, headersMax } from '../../../../services/log/kafka/repairs/record-batches.ts'
import { requestsOf } from '../../../../services/log/kafka/writer.ts'
import type { Header, NewRecord } from '../../../../services/log/port.ts'

test('no request has more records and headers than a batch that can be read, however small they are', () => {
  const headers = Array<Header>(headersMax).fill(['h', new Uint8Array()])
  const record: NewRecord = { topic: 'pledges', key: null, value: null, headers }
  const counts = [...requestsOf(Array<NewRecord>(2_000).fill(record))].map(({ length }) => length)
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(2_000)
  expect(Math.max(...counts) * (headersMax + 10)).toBeLessThan(batchPartsMax)
})
