import { describe, expect, it } from 'vitest'
import { createGate, OverloadedError } from '../../../services/query/gate.ts'

/** Work that runs until it is told to end. */
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

describe('the gate before ClickHouse', () => {
  it('lets so many run at once, and the next when one has ended, in the order in which they came', async () => {
    const gate = createGate({ runningMax: 2, waitingMax: 10, waitMsMax: 1000 })
    const works = [openWork(), openWork(), openWork(), openWork()]
    const results = works.map(({ work }) => gate(work))
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

  it('refuses at once what is beyond those who may wait', async () => {
    const gate = createGate({ runningMax: 1, waitingMax: 1, waitMsMax: 1000 })
    const [running, waiting, refused] = [openWork(), openWork(), openWork()]
    const results = [gate(running.work), gate(waiting.work)]
    await expect(gate(refused.work)).rejects.toBeInstanceOf(OverloadedError)
    expect(refused.isRunning()).toBe(false)
    running.end()
    waiting.end()
    expect(await Promise.all(results)).toEqual(['done', 'done'])
  })

  it('refuses who has waited too long, and gives the place to the next', async () => {
    const gate = createGate({ runningMax: 1, waitingMax: 2, waitMsMax: 10 })
    const [running, late, next] = [openWork(), openWork(), openWork()]
    const first = gate(running.work)
    await expect(gate(late.work)).rejects.toBeInstanceOf(OverloadedError)
    running.end()
    await first
    next.end()
    expect(await gate(next.work)).toBe('done')
    expect(late.isRunning()).toBe(false)
  })
})
