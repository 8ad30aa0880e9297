import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSlidingWindowLog } from '../../../../services/query/rate-limit/sliding-window-log.ts'

const settings = { limit: 4, windowMs: 50 }

type Step = { wait: number } & ({ does: 'take' } | { does: 'release'; nth: number })

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ wait: fc.integer({ min: 1, max: 20 }), does: fc.constant<'take'>('take') }),
    fc.record({ wait: fc.constant(0), does: fc.constant<'release'>('release'), nth: fc.nat({ max: 3 }) }),
  ),
  { maxLength: 100, size: 'max' },
)

describe('the sliding-window log', () => {
  it('holds exactly the hits that were counted and not removed, as long as they count', () => {
    fc.assert(
      fc.property(steps, taken => {
        const windows = createSlidingWindowLog(settings, 10)
        let held: number[] = []
        let time = 0
        for (const step of taken) {
          time += step.wait
          held = held.filter(at => at >= time - settings.windowMs)
          if (step.does === 'take') {
            const allowed = held.length < settings.limit
            const blockedBy = held[0] ?? time
            if (allowed) held.push(time)
            expect(windows.take('a', time)).toEqual({ allowed, count: held.length, blockedBy })
          } else if (held.length > 0) {
            const [released = 0] = held.splice(step.nth % held.length, 1)
            windows.release('a', released)
          }
          expect(windows.times('a')).toEqual(held)
        }
      }),
      { numRuns: 300 },
    )
  })
})
