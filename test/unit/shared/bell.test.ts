import { describe, expect, test } from 'vitest'
import { createBell } from '../../../services/shared/bell.ts'

const never = new AbortController().signal
const endless = 2 ** 30

describe('a bell', () => {
  test('wakes who waits', async () => {
    const bell = createBell()
    const waiting = bell.wait(endless, never)
    bell.ring()
    await expect(waiting).resolves.toBeUndefined()
  })

  test('that rang while nobody waited is heard by the next wait, once', async () => {
    const bell = createBell()
    bell.ring()
    bell.ring()
    await bell.wait(endless, never)
    let isWoken = false
    const second = bell.wait(endless, never).then(() => {
      isWoken = true
    })
    await new Promise(setImmediate)
    expect(isWoken).toBe(false)
    bell.ring()
    await second
  })

  test('that woke somebody has not rung for the next wait', async () => {
    const bell = createBell()
    const first = bell.wait(endless, never)
    bell.ring()
    await first
    const abort = new AbortController()
    let isWoken = false
    const second = bell.wait(endless, abort.signal).then(() => {
      isWoken = true
    })
    await new Promise(setImmediate)
    expect(isWoken).toBe(false)
    abort.abort()
    await second
  })

  test('is not waited for longer than asked, nor after an abort', async () => {
    const bell = createBell()
    await bell.wait(1, never)
    await bell.wait(endless, AbortSignal.abort())
    const abort = new AbortController()
    const waiting = bell.wait(endless, abort.signal)
    abort.abort()
    await expect(waiting).resolves.toBeUndefined()
  })
})
