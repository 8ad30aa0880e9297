import { expect, test } from 'vitest'
import { createTurns } from '../../../services/query/turns.ts'

test('the event loop turns between works that were all waiting, as often as their time asks for', async () => {
  let time = 0
  let loops = 0
  let isOver = false
  const count = () => {
    loops++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const turn = createTurns({ msMax: 10, now: () => time })
  const order: number[] = []
  await Promise.all(
    Array.from({ length: 100 }, async (_, number) => {
      await turn()
      order.push(number)
      time += 5
    }),
  )
  isOver = true
  expect(order).toEqual(Array.from({ length: 100 }, (_, number) => number))
  // Half a second of work in pieces of ten milliseconds; how the last of a piece falls is the engine's.
  expect(loops).toBeGreaterThanOrEqual(30)
})
