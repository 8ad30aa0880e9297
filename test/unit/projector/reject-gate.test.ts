import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createRejectGate, type RejectGate } from '../../../services/projector/reject-gate.ts'

const settings = { shareMax: 0.1, windowRecords: 1_000, rejectsMin: 10 }

function admit(gate: RejectGate, records: number, rejects: number): boolean {
  return gate.admit({ records, rejects })
}

describe('the reject gate', () => {
  test('lets a few bad records in a quiet log pass', () => {
    const gate = createRejectGate(settings)
    for (let i = 0; i < 9; i++) expect(admit(gate, 1, 1)).toBe(true)
    expect(admit(gate, 1, 1)).toBe(false)
  })

  test('shuts when more than the share of recent records are rejects, not at the share', () => {
    const gate = createRejectGate(settings)
    expect(admit(gate, 900, 0)).toBe(true)
    expect(admit(gate, 100, 100)).toBe(true)
    expect(admit(gate, 1_000, 101)).toBe(false)
  })

  test('shuts at once when a schema goes wrong after a long good time', () => {
    const gate = createRejectGate(settings)
    for (let i = 0; i < 1_000; i++) expect(admit(gate, 1_000, 0)).toBe(true)
    expect(admit(gate, 1_000, 1_000)).toBe(false)
  })

  test('shuts when the bad records come in small batches', () => {
    const gate = createRejectGate(settings)
    admit(gate, 5_000, 0)
    const admitted = Array.from({ length: 200 }, () => admit(gate, 10, 10))
    expect(admitted.includes(false)).toBe(true)
    expect(admitted.filter(Boolean).length).toBeLessThanOrEqual(100)
  })

  test('forgets what is longer ago than its window', () => {
    const gate = createRejectGate(settings)
    expect(admit(gate, 1_000, 100)).toBe(true)
    expect(admit(gate, 1_000, 0)).toBe(true)
    expect(admit(gate, 1_000, 100)).toBe(true)
  })

  test('a share of 1 never stops; a share of 0 stops at the least number', () => {
    const never = createRejectGate({ ...settings, shareMax: 1 })
    for (let i = 0; i < 50; i++) expect(admit(never, 100, 100)).toBe(true)
    const strict = createRejectGate({ ...settings, shareMax: 0 })
    expect(admit(strict, 100_000, 10)).toBe(false)
  })

  test('is open exactly while the rejects of the window are few or within the share', () => {
    const batch = fc
      .nat(300)
      .chain(records => fc.record({ records: fc.constant(records), rejects: fc.nat(records) }))
    fc.assert(
      fc.property(fc.array(batch, { maxLength: 40 }), batches => {
        const gate = createRejectGate(settings)
        for (const [index, counts] of batches.entries()) {
          let records = 0
          let rejects = 0
          for (let i = index; i >= 0 && records < settings.windowRecords; i--) {
            records += batches[i]?.records ?? 0
            rejects += batches[i]?.rejects ?? 0
          }
          const expected = rejects < settings.rejectsMin || rejects <= settings.shareMax * records
          expect(gate.admit(counts)).toBe(expected)
        }
      }),
    )
  })
})
