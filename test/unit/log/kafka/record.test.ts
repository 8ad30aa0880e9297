/** A producer may give its records any time of 64 bits. None of them ends a projector: every time can be stored as it is delivered. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { toLogRecord } from '../../../../services/log/kafka/record.ts'

const anyTime = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.constantFrom(-(2n ** 60n), 2n ** 53n, 2n ** 61n, -1n, 0n),
)

test('the time of a record is an exact number, whatever its producer wrote', () => {
  fc.assert(
    fc.property(anyTime, time => {
      const message = { key: Buffer.from('acct_x'), value: null, offset: '7', timestamp: `${time}` }
      const { appendedAt } = toLogRecord('accounts', 0, message)
      expect(Number.isSafeInteger(appendedAt)).toBe(true)
      if (time >= -(2n ** 53n) + 1n && time < 2n ** 53n) expect(appendedAt).toBe(Number(time))
    }),
  )
})
