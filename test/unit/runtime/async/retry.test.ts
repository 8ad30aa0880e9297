/** Trying again: only after what may pass, in pauses that grow, and never without end. */
import { describe, expect, test } from 'vitest'
import { backoffMs, type RetryPolicy, retry } from '../../../../services/runtime/async/retry.ts'

const passing = new Error('passes')
const policy: RetryPolicy = { isRetryable: error => error === passing, attemptsMax: 4, pauseMsMin: 100 }

/** A clock that only the pauses and the attempts move. */
function virtualTime(attemptMs = 0) {
  let nowMs = 0
  const pauses: number[] = []
  return {
    pauses,
    spend: () => {
      nowMs += attemptMs
    },
    dependencies: {
      monotonicMs: () => nowMs,
      sleep: async (ms: number) => {
        pauses.push(ms)
        nowMs += ms
      },
    },
  }
}

function failing(times: number, error: unknown = passing, onAttempt: () => void = () => {}) {
  let attempts = 0
  return {
    attempts: () => attempts,
    work: async () => {
      onAttempt()
      if (++attempts <= times) throw error
      return 'done'
    },
  }
}

describe('a retry', () => {
  test('returns the first success, and tells of each failure before it', async () => {
    const time = virtualTime()
    const told: [string, number][] = []
    const onRetry = (error: Error, attempt: number) => void told.push([error.message, attempt])
    const call = failing(2)
    expect(await retry(call.work, { ...policy, onRetry }, time.dependencies)).toBe('done')
    expect(told).toEqual([
      ['passes', 1],
      ['passes', 2],
    ])
    expect(time.pauses).toEqual([100, 100])
  })

  test('throws at once what cannot pass', async () => {
    const time = virtualTime()
    const final = new Error('stays')
    const call = failing(9, final)
    await expect(retry(call.work, policy, time.dependencies)).rejects.toBe(final)
    expect(call.attempts()).toBe(1)
    expect(time.pauses).toEqual([])
  })

  test('ends after its attempts, with the last error', async () => {
    const call = failing(9)
    await expect(retry(call.work, policy, virtualTime().dependencies)).rejects.toBe(passing)
    expect(call.attempts()).toBe(4)
  })

  test('ends after its time, which the attempts themselves take a part of', async () => {
    const time = virtualTime(400)
    const call = failing(99, passing, time.spend)
    const bounded = { isRetryable: policy.isRetryable, msMax: 1_000, pauseMsMin: 100 }
    await expect(retry(call.work, bounded, time.dependencies)).rejects.toBe(passing)
    expect(call.attempts()).toBe(3)
  })

  test('makes no further attempt once its signal has aborted', async () => {
    const abort = new AbortController()
    const call = failing(9, passing, () => abort.abort())
    const dependencies = { ...virtualTime().dependencies, signal: abort.signal }
    await expect(retry(call.work, policy, dependencies)).rejects.toBe(passing)
    expect(call.attempts()).toBe(1)
  })
})

describe('a pause', () => {
  const bounds = { pauseMsMin: 200, pauseMsMax: 5_000 }

  test('doubles up to its bound, also after very many failures', () => {
    const pauses = [1, 2, 3, 5, 6, 5_000].map(failures => backoffMs(failures, bounds))
    expect(pauses).toEqual([200, 400, 800, 3_200, 5_000, 5_000])
  })
})
