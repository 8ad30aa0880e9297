import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createRejectCircuitBreaker } from '../../../../services/projector/ingest/reject-circuit-breaker.ts'
import { readConfig } from '../../../../services/runtime/config.ts'

const [windowRecords, rejectsMin] = [1_000, 10]

// Most have few rejects: otherwise the window would always be over the share, whatever it holds.
const batch = fc.oneof(fc.nat(12), fc.nat(600), fc.constant(windowRecords)).chain(records =>
  fc.record({
    records: fc.constant(records),
    rejects: fc.oneof(
      fc.constant(0),
      fc.nat(Math.ceil(records / 8)),
      fc.constantFrom(Math.floor(records / 10), Math.min(records, rejectsMin)),
      fc.nat(records),
    ),
  }),
)

test('the circuit breaker lets batches pass exactly while the rejects in the window are few or within the share', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(0, 0.1, 0.1, 0.1, 1),
      fc.array(batch, { maxLength: 40, size: 'max' }),
      (shareMax, batches) => {
        const breaker = createRejectCircuitBreaker({
          ...readConfig({}),
          PLEDGEVIEW_REJECT_SHARE_MAX: shareMax,
          PLEDGEVIEW_REJECT_WINDOW_RECORDS: windowRecords,
          PLEDGEVIEW_REJECTS_MIN: rejectsMin,
        })
        for (const [index, counts] of batches.entries()) {
          let records = 0
          let rejects = 0
          for (let i = index; i >= 0 && records < windowRecords; i--) {
            records += batches[i]?.records ?? 0
            rejects += batches[i]?.rejects ?? 0
          }
          const mayPass = rejects < rejectsMin || rejects <= shareMax * records
          expect(breaker(counts)).toEqual(mayPass ? undefined : { records, rejects })
        }
      },
    ),
    { numRuns: 500 },
  )
})
