/** A kept value: loaded once for all who ask, and given for as long as it may be. */
import { expect, test } from 'vitest'
import { kept } from '../../../../services/runtime/async/kept.ts'

function world(options: { ms: number }) {
  let now = 0
  let loads = 0
  let isAway = false
  const read = kept(
    async () => {
      if (isAway) throw new Error('away')
      loads++
      return loads
    },
    options,
    { monotonicMs: () => now },
  )
  return {
    read,
    pass(ms: number) {
      now += ms
    },
    goAway() {
      isAway = true
    },
  }
}

test('calls during a load share it', async () => {
  const { read } = world({ ms: 100 })
  expect(await Promise.all([read(), read(), read()])).toEqual([1, 1, 1])
})

test('a value is given until its time is over, and loaded again after it', async () => {
  const { read, pass } = world({ ms: 100 })
  await read()
  pass(99)
  expect(await read()).toBe(1)
  pass(1)
  expect(await read()).toBe(2)
})

test('a load that fails rejects, and no old value takes its place', async () => {
  const { read, pass, goAway } = world({ ms: 100 })
  await read()
  goAway()
  pass(100)
  await expect(read()).rejects.toThrow('away')
})
