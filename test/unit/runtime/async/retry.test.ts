/** Trying again: only after what may pass, in pauses that grow, and never without end. */
import { expect, test } from 'vitest'
import { backoffMs, type RetryPolicy, retry } from '../../../../services/runtime/async/retry.ts'

const [passing, final] = [new Error('passes'), new Error('stays')]
const abort = new AbortController()
const isRetryable = (error: unknown) => error === passing
const policy: RetryPolicy = { isRetryable, attemptsMax: 4, pauseMsMin: 100 }

/** Retries work that fails so often, on a clock that only the pauses and the attempts move. */
async function retried({ times = 99, error = passing, attemptMs = 0, by = policy, aborts = false }) {
  let [nowMs, attempts] = [0, 0]
  const pauses: number[] = []
  const work = async () => {
    nowMs += attemptMs
    if (aborts) abort.abort()
    if (++attempts <= times) throw error
    return 'done'
  }
  const sleep = async (ms: number) => {
    pauses.push(ms)
    nowMs += ms
  }
  const dependencies = { monotonicMs: () => nowMs, sleep, signal: aborts ? abort.signal : undefined }
  const end = await retry(work, by, dependencies).catch((cause: unknown) => cause)
  return { end, attempts, pauses }
}

test('a retry returns the first success, and tells of each failure before it', async () => {
  const told: [string, number][] = []
  const onRetry = (error: Error, attempt: number) => void told.push([error.message, attempt])
  const found = await retried({ times: 2, by: { ...policy, onRetry } })
  expect(found).toEqual({ end: 'done', attempts: 3, pauses: [100, 100] })
  expect(told).toEqual([
    ['passes', 1],
    ['passes', 2],
  ])
})

test.each([
  ['at once with what cannot pass', { error: final }, 1],
  ['after its attempts, with the last error', {}, 4],
  [
    'after its time, which the attempts themselves take a part of',
    { attemptMs: 400, by: { isRetryable, msMax: 1_000, pauseMsMin: 100 } },
    3,
  ],
  ['once its signal has aborted', { aborts: true }, 1],
])('a retry ends %s', async (_, given, attempts) => {
  expect(await retried(given)).toMatchObject({ end: 'error' in given ? final : passing, attempts })
})

test('a pause doubles up to its bound, also after very many failures', () => {
  const bounds = { pauseMsMin: 200, pauseMsMax: 5_000 }
  const pauses = [1, 2, 3, 5, 6, 5_000].map(failures => backoffMs(failures, bounds))
  expect(pauses).toEqual([200, 400, 800, 3_200, 5_000, 5_000])
})
