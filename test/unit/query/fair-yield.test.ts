import { expect, test } from 'vitest'
import { createFairYield, createRest } from '../../../services/query/fair-yield.ts'

test('long work of several callers rests together, for as long as it worked, after each time limit', async () => {
  let time = 0
  let worked = 0
  // The clock shows work only. A rest ends no earlier than its timer.
  const startedMs = performance.now()
  const rest = createRest({ msMax: 10, now: () => time })
  await rest()
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      for (let part = 0; part < 5; part++) {
        await rest()
        time += 5
        worked += 5
      }
    }),
  )
  expect(worked).toBe(100)
  // A rest after each ten milliseconds or a little more, each at least as long.
  expect(performance.now() - startedMs).toBeGreaterThan(worked / 2)
})

test('the event loop runs between the works of many waiting callers, once per time limit', async () => {
  let time = 0
  let loops = 0
  let isOver = false
  const count = () => {
    loops++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const fairYield = createFairYield({ msMax: 10, now: () => time })
  const order: number[] = []
  await Promise.all(
    Array.from({ length: 100 }, async (_, number) => {
      await fairYield()
      order.push(number)
      time += 5
    }),
  )
  isOver = true
  expect(order).toEqual(Array.from({ length: 100 }, (_, number) => number))
  // Half a second of work in pieces of ten milliseconds. The engine decides when exactly a piece ends.
  expect(loops).toBeGreaterThanOrEqual(30)
})
