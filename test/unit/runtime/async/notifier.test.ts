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
})
