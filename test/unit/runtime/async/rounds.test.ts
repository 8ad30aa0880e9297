import { expect, test } from 'vitest'
import { startRounds } from '../../../../services/runtime/async/rounds.ts'

test('rounds go on after one that failed, and end when they are closed', async () => {
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
  await new Promise(resolve => setImmediate(resolve))
  expect(count).toBe(ended)
})
