import { expect, test } from 'vitest'
import { startRounds } from '../../../services/portal/rounds.ts'

test('rounds go on after one that failed, begin at once when woken, and end when they are closed', async () => {
  const errors: unknown[] = []
  let count = 0
  const round = async () => {
    count++
    throw new Error('no answer')
  }
  const failing = startRounds(round, { pauseMs: 1, onError: error => errors.push(error) })
  await expect.poll(() => errors.length).toBeGreaterThan(2)
  await failing.close()
  const ended = count
  const woken = startRounds(round, { pauseMs: 3_600_000, onError: () => undefined })
  await expect.poll(() => count).toBe(ended + 1)
  woken.wake()
  await expect.poll(() => count).toBe(ended + 2)
  await woken.close()
  expect(count).toBe(ended + 2)
})
