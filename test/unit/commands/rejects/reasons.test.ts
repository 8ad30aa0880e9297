import { describe, expect, test } from 'vitest'
import { createReasonTally } from '../../../../services/commands/rejects/reasons.ts'
import { reasonKind } from '../../../../services/tables/rejects.ts'
import type { StoredReject } from '../../../../services/tables/stored-rejects.ts'

describe('the kind of a reason', () => {
  test.each([
    ['schema id 999 is unknown for a pledge', 'schema id 999 is unknown for a pledge'],
    [
      'the value is not Avro of schema id 2: truncated buffer',
      'the value is not Avro of schema id 2: truncated buffer',
    ],
    ['amount_minor -5 is negative', 'amount_minor … is negative'],
    ['rewards[12].amount_minor -5 is negative', 'rewards[…].amount_minor … is negative'],
    [
      'changed_at 99999999999999 ms is outside the years 1900 to 2299',
      'changed_at … ms is outside the years … to …',
    ],
    ['key is not the entity\'s own ("c\\"1/p2")', "key is not the entity's own (…)"],
    ['currency "EURO" is not an ISO 4217 code', 'currency … is not an ISO … code'],
    ['the record has no key', 'the record has no key'],
  ])('%s', (reason, kind) => {
    expect(reasonKind(reason)).toBe(kind)
  })
})

describe('a tally of reasons', () => {
  test('counts each kind with its first and last time and an example, the most frequent first', () => {
    const tally = createReasonTally()
    tally.add(...rejectAt(1, 'slug is empty', 300))
    tally.add(...rejectAt(2, 'amount_minor -5 is negative', 200))
    tally.add(...rejectAt(3, 'amount_minor -7 is negative', 100))
    expect(tally.counts()).toEqual([
      { reason: 'amount_minor … is negative', count: 2, first: 100, last: 200, example: 'pledges/0/2' },
      { reason: 'slug is empty', count: 1, first: 300, last: 300, example: 'pledges/0/1' },
    ])
  })

  test('of endless kinds holds ten thousand, and counts the others together', () => {
    const tally = createReasonTally()
    for (let n = 0; n < 10_500; n++) tally.add(...rejectAt(n, `schema id ${n} is unknown`, n))
    const [others, ...kinds] = tally.counts()
    expect(others).toMatchObject({ reason: '(any other reason)', count: 500 })
    expect(kinds).toHaveLength(10_000)
  })
})

function rejectAt(
  offset: number,
  reason: string,
  rejectedAt: number,
): [reject: StoredReject, reason: string] {
  const reject = {
    record: { topic: 'pledges' as const, partition: 0, offset, appendedAt: 0, key: null, value: null },
    reason,
    rejectedAt,
    sizes: { key: 0, value: 0, headers: 0 },
  }
  return [reject, reason]
}
