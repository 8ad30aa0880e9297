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
  test('lets a few bad records in a quiet log pass', () => {
    const breaker = createRejectCircuitBreaker(settings)
    for (let i = 0; i < 9; i++) expect(admit(breaker, 1, 1)).toBe(true)
    expect(admit(breaker, 1, 1)).toBe(false)
  })

  test('trips when more than the share of recent records were rejected, not at the share', () => {
    const breaker = createRejectCircuitBreaker(settings)
    expect(admit(breaker, 900, 0)).toBe(true)
    expect(admit(breaker, 100, 100)).toBe(true)
    expect(admit(breaker, 1_000, 101)).toBe(false)
  })

  test('trips at once when a schema goes wrong after a long good time', () => {
    const breaker = createRejectCircuitBreaker(settings)
    for (let i = 0; i < 1_000; i++) expect(admit(breaker, 1_000, 0)).toBe(true)
    expect(admit(breaker, 1_000, 1_000)).toBe(false)
  })

  test('trips when the bad records come in small batches', () => {
    const breaker = createRejectCircuitBreaker(settings)
    admit(breaker, 5_000, 0)
    const admitted = Array.from({ length: 200 }, () => admit(breaker, 10, 10))
    expect(admitted.includes(false)).toBe(true)
    expect(admitted.filter(Boolean).length).toBeLessThanOrEqual(100)
  })

  test('forgets what is older than its window', () => {
    const breaker = createRejectCircuitBreaker(settings)
    expect(admit(breaker, 1_000, 100)).toBe(true)
    expect(admit(breaker, 1_000, 0)).toBe(true)
    expect(admit(breaker, 1_000, 100)).toBe(true)
  })

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
