import { describe, expect, test } from 'vitest'
import { createNotifier } from '../../../../services/runtime/async/notifier.ts'

const never = new AbortController().signal
const endless = 2 ** 30

describe('a notifier', () => {
  test('ends the next wait at once if nothing waited when it was notified, and only that wait', async () => {
    const notifier = createNotifier()
    notifier.notify()
    notifier.notify()
    await notifier.wait(endless, never)
    let isWoken = false
    const second = notifier.wait(endless, never).then(() => {
      isWoken = true
    })
    await new Promise(setImmediate)
    expect(isWoken).toBe(false)
    notifier.notify()
    await second
  })

  test('does not end the next wait if it woke a waiting loop', async () => {
    const notifier = createNotifier()
    const first = notifier.wait(endless, never)
    notifier.notify()
    await first
    const abort = new AbortController()
    let isWoken = false
    const second = notifier.wait(endless, abort.signal).then(() => {
      isWoken = true
    })
    await new Promise(setImmediate)
    expect(isWoken).toBe(false)
    abort.abort()
    await second
  })

  test('is not waited for longer than asked, nor after an abort', async () => {
    const notifier = createNotifier()
    await notifier.wait(1, never)
    await notifier.wait(endless, AbortSignal.abort())
    const abort = new AbortController()
    const waiting = notifier.wait(endless, abort.signal)
    abort.abort()
    await expect(waiting).resolves.toBeUndefined()
  })
})
