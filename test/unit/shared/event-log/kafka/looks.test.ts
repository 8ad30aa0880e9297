/** The looks of a group's owner for what it lacks: one at a time, and none for what is known. */
import { beforeEach, expect, test } from 'vitest'
import { createLooks, type Looks } from '../../../../../services/shared/event-log/kafka/looks.ts'
import type { Behind } from '../../../../../services/shared/event-log/kafka/offsets.ts'

const all = new Map([['pledges/0', 100]])
const behind = { recorded: 60, from: 55 }
let asked: [string, number][][]
let answers: ((found: Map<string, Behind>) => void)[]
let failures: ((error: Error) => void)[]
let now: number
let looks: Looks

beforeEach(() => {
  asked = []
  answers = []
  failures = []
  now = 0
  looks = createLooks(
    committed =>
      new Promise((resolve, reject) => {
        asked.push([...committed])
        answers.push(resolve)
        failures.push(reject)
      }),
    () => now,
  )
})

const find = (...committed: [string, number][]) => looks.find(new Map(committed), all)

/** Lets everything run that can. */
const settled = () => new Promise(setImmediate)

test('the second look waits for the first, and asks only about what that one did not find', async () => {
  const first = find(['pledges/0', 100], ['pledges/1', 7])
  const second = find(['pledges/1', 7], ['pledges/2', 9])
  await settled()
  expect(asked).toEqual([
    [
      ['pledges/0', 100],
      ['pledges/1', 7],
    ],
  ])
  answers[0]?.(new Map([['pledges/1', behind]]))
  expect(await first).toEqual(new Map([['pledges/1', behind]]))
  await settled()
  expect(asked[1]).toEqual([['pledges/2', 9]])
  expect(looks.isUnderWay()).toBe(true)
  answers[1]?.(new Map())
  expect(await second).toEqual(new Map([['pledges/1', behind]]))
  expect(looks.isUnderWay()).toBe(false)
})

test('what is known does not count when the group has moved, or after five minutes', async () => {
  const first = find(['pledges/0', 100])
  await settled()
  answers[0]?.(new Map([['pledges/0', behind]]))
  await first
  expect(await find(['pledges/0', 100])).toEqual(new Map([['pledges/0', behind]]))
  const moved = find(['pledges/0', 101])
  await settled()
  answers[1]?.(new Map())
  expect(await moved).toEqual(new Map())
  expect(asked).toHaveLength(2)
  now = 300_001
  const later = find(['pledges/0', 101])
  await settled()
  answers[2]?.(new Map())
  await later
  expect(asked).toHaveLength(3)
})

test('the owner is asked once if the group has committed nothing', async () => {
  const first = find()
  await settled()
  answers[0]?.(new Map())
  await first
  await find()
  expect(asked).toEqual([[]])
})

test('after a look that failed, the next one asks itself', async () => {
  const first = find(['pledges/0', 100])
  const second = find(['pledges/0', 100])
  await settled()
  failures[0]?.(new Error('away'))
  await expect(first).rejects.toThrow('away')
  await settled()
  answers[1]?.(new Map([['pledges/0', behind]]))
  expect(await second).toEqual(new Map([['pledges/0', behind]]))
})
