/** The rounds in which a rebuild catches up with a log that goes on growing. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { inShorterRounds } from '../../../services/generations/build/ingest.ts'

/** Runs rounds of these times, ms, the last of them again and again. Resolves with how many were run. */
async function roundsOf(times: readonly number[]): Promise<number> {
  let rounds = 0
  await inShorterRounds(async () => times[Math.min(rounds++, times.length - 1)] ?? 0)
  return rounds
}

test('end once what is left is short', async () => {
  expect(await roundsOf([60_000, 20_000, 7_000, 1_900])).toBe(4)
})

// On a busy machine every round took longer than the bound, and a rebuild repeated them for minutes.
test('end if they do not get shorter, although they are long', async () => {
  expect(await roundsOf([60_000, 9_000, 8_000])).toBe(3)
  expect(await roundsOf([5_000, 6_000])).toBe(2)
})

test('are few, whatever their times: each but the last is at least a fifth shorter than the one before it', () =>
  fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 2_000, max: 1e9 }), { minLength: 1 }), async times => {
      // 1e9 * 0.8^59 is below the bound of 2,000 ms.
      expect(await roundsOf(times)).toBeLessThanOrEqual(61)
    }),
  ))
