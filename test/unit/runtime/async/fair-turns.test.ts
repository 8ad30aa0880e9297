import { describe, expect, it } from 'vitest'
import {
  createFairTurns,
  createFairYield,
  createShareOfLoop,
  type FairTurns,
  type FairTurnsSettings,
  OverloadedError,
} from '../../../../services/runtime/async/fair-turns.ts'

const defaults: FairTurnsSettings = {
  runningMax: 1,
  runningPerKeyMax: 1,
  waitingPerKeyMax: 100,
  waitMsMax: 60_000,
}

/** Work that notes its start, and runs until the test ends it. */
function openWork(turns: FairTurns) {
  const started: string[] = []
  const ends: (() => void)[] = []
  return {
    started,
    ask(key: string, name: string, isGone = () => false) {
      const result = turns.run({ key, isGone }, () => {
        started.push(name)
        return new Promise<void>(resolve => ends.push(resolve))
      })
      result.catch(() => undefined)
      return result
    },
    /** Ends what runs, one piece after the other, until nothing is left. */
    async endAll() {
      for (let end = ends.shift(); end; end = ends.shift()) {
        end()
        await new Promise(resolve => setImmediate(resolve))
      }
    },
  }
}

describe('fair turns', () => {
  it('alternate between keys, whatever the order of arrival', async () => {
    const work = openWork(createFairTurns(defaults))
    for (let n = 1; n <= 50; n++) work.ask('greedy', `greedy ${n}`)
    work.ask('b', 'b 1')
    work.ask('c', 'c 1')
    work.ask('b', 'b 2')
    await work.endAll()
    expect(work.started.slice(0, 7)).toEqual([
      'greedy 1',
      'greedy 2',
      'b 1',
      'c 1',
      'greedy 3',
      'b 2',
      'greedy 4',
    ])
    expect(work.started).toHaveLength(53)
  })

  it('bound what runs of one key, and of all', async () => {
    const work = openWork(createFairTurns({ ...defaults, runningMax: 5, runningPerKeyMax: 2 }))
    for (const key of ['a', 'b', 'c']) for (let n = 1; n <= 3; n++) work.ask(key, `${key} ${n}`)
    expect(work.started).toEqual(['a 1', 'a 2', 'b 1', 'b 2', 'c 1'])
    await work.endAll()
    expect(work.started).toHaveLength(9)
  })

  it('refuse what has waited too long, and never start it', async () => {
    const work = openWork(createFairTurns({ ...defaults, waitMsMax: 10 }))
    work.ask('a', 'a 1')
    await expect(work.ask('b', 'b 1')).rejects.toBeInstanceOf(OverloadedError)
    await work.endAll()
    expect(work.started).toEqual(['a 1'])
  })

  it('forget a key whose waiting work is all gone, so that it has no place before others', async () => {
    const work = openWork(createFairTurns(defaults))
    let isGone = false
    work.ask('a', 'a 1')
    work.ask('b', 'gone', () => isGone)
    isGone = true
    await work.endAll()
    work.ask('c', 'c 1')
    work.ask('d', 'd 1')
    work.ask('b', 'b 1')
    await work.endAll()
    expect(work.started).toEqual(['a 1', 'c 1', 'd 1', 'b 1'])
  })
})

it('long work of several callers rests together, for as long as it worked beyond a first account', async () => {
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

it('work after an idle time does not rest for that time', async () => {
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

it('the event loop runs between the works of many waiting callers, once per time limit', async () => {
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
