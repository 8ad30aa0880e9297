import { describe, expect, it } from 'vitest'
import { createConcurrencyLimit, OverloadedError } from '../../../services/query/concurrency-limit.ts'

/** Work that runs until the test ends it. */
function openWork() {
  let end: (error?: Error) => void = () => undefined
  let isRunning = false
  const ended = new Promise<string>((resolve, reject) => {
    end = error => (error ? reject(error) : resolve('done'))
  })
  return {
    work: () => {
      isRunning = true
      return ended
    },
    end: (error?: Error) => end(error),
    isRunning: () => isRunning,
  }
}

describe('the concurrency limit in front of ClickHouse', () => {
  it('runs a bounded number at once, and starts the next in the order of arrival', async () => {
    const limited = createConcurrencyLimit({ runningMax: 2, waitingMax: 10, waitMsMax: 1000 })
    const works = [openWork(), openWork(), openWork(), openWork()]
    const results = works.map(({ work }) => limited(work))
    await Promise.resolve()
    expect(works.map(work => work.isRunning())).toEqual([true, true, false, false])
    works[1]?.end()
    await results[1]
    await expect.poll(() => works.map(work => work.isRunning())).toEqual([true, true, true, false])
    works[0]?.end(new Error('failed'))
    await expect(results[0]).rejects.toThrow('failed')
    await expect.poll(() => works[3]?.isRunning()).toBe(true)
    for (const work of works) work.end()
    expect(await Promise.all(results.slice(1))).toEqual(['done', 'done', 'done'])
  })

  it('refuses work at once when too much is waiting', async () => {
    const limited = createConcurrencyLimit({ runningMax: 1, waitingMax: 1, waitMsMax: 1000 })
    const [running, waiting, refused] = [openWork(), openWork(), openWork()]
    const results = [limited(running.work), limited(waiting.work)]
    await expect(limited(refused.work)).rejects.toBeInstanceOf(OverloadedError)
    expect(refused.isRunning()).toBe(false)
    running.end()
    waiting.end()
    expect(await Promise.all(results)).toEqual(['done', 'done'])
  })

  it('refuses work that has waited too long, and gives its slot to the next', async () => {
    const limited = createConcurrencyLimit({ runningMax: 1, waitingMax: 2, waitMsMax: 10 })
    const [running, late, next] = [openWork(), openWork(), openWork()]
    const first = limited(running.work)
    await expect(limited(late.work)).rejects.toBeInstanceOf(OverloadedError)
    running.end()
    await first
    next.end()
    expect(await limited(next.work)).toBe('done')
    expect(late.isRunning()).toBe(false)
  })
})
