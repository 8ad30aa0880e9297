import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  createRejectCircuitBreaker,
  type RejectCircuitBreaker,
} from '../../../../services/projector/ingest/reject-circuit-breaker.ts'

const settings = { shareMax: 0.1, windowRecords: 1_000, rejectsMin: 10 }

function admit(breaker: RejectCircuitBreaker, records: number, rejects: number): boolean {
  return breaker.admit({ records, rejects })
}

describe('the circuit breaker for rejects', () => {
  test('never trips with a share of 1, and trips at the least number with a share of 0', () => {
    const never = createRejectCircuitBreaker({ ...settings, shareMax: 1 })
    for (let i = 0; i < 50; i++) expect(admit(never, 100, 100)).toBe(true)
    const strict = createRejectCircuitBreaker({ ...settings, shareMax: 0 })
    expect(admit(strict, 100_000, 10)).toBe(false)
  })

  test('lets batches pass exactly while the rejects in the window are few or within the share', () => {
    const batch = fc
      .nat(300)
      .chain(records => fc.record({ records: fc.constant(records), rejects: fc.nat(records) }))
    fc.assert(
      fc.property(fc.array(batch, { maxLength: 40 }), batches => {
        const breaker = createRejectCircuitBreaker(settings)
        for (const [index, counts] of batches.entries()) {
          let records = 0
          let rejects = 0
          for (let i = index; i >= 0 && records < settings.windowRecords; i--) {
            records += batches[i]?.records ?? 0
            rejects += batches[i]?.rejects ?? 0
          }
          const expected = rejects < settings.rejectsMin || rejects <= settings.shareMax * records
          expect(breaker.admit(counts)).toBe(expected)
        }
      }),
    )
  })
})
