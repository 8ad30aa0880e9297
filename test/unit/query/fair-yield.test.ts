import { expect, test } from 'vitest'
import { createFairYield, createShareOfLoop } from '../../../services/runtime/async/fair-turns.ts'

test('long work of several callers rests together, for as long as it worked beyond a first account', async () => {
  let time = 0
  let worked = 0
  // The clock shows work only. A rest ends no earlier than its timer.
  const startedMs = performance.now()
  const inShare = createShareOfLoop({ partMsMax: 10, restAfterMs: 20, now: () => time })
  await Promise.all(
    Array.from({ length: 4 }, () =>
      inShare(async pause => {
        for (let part = 0; part < 5; part++) {
          await pause()
          time += 5
          worked += 5
        }
      }),
    ),
  )
  expect(worked).toBe(100)
  // After the account is used up, a rest after each ten milliseconds or a little more, each at least as long.
  expect(performance.now() - startedMs).toBeGreaterThan((worked - 20) / 2)
})

test('work after an idle time does not rest for that time', async () => {
  let time = 0
  const inShare = createShareOfLoop({ partMsMax: 10, restAfterMs: 20, now: () => time })
  const yields: number[] = []
  for (let piece = 0; piece < 20; piece++) {
    await inShare(async pause => {
      time += 10
      // A rest would take a timer; the immediate comes first.
      let isYielded = false
      setImmediate(() => {
        isYielded = true
      })
      await pause()
      yields.push(isYielded ? 1 : 0)
    })
    time += 1_000
  }
  expect(yields).toEqual(yields.map(() => 1))
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
