import { expect, test } from 'vitest'
import { kept } from '../../../../services/runtime/async/kept.ts'

test('a load that fails rejects, and no old value takes its place', async () => {
  let now = 0
  const loads = [async () => 'value', () => Promise.reject(new Error('away'))]
  const read = kept(async () => loads.shift()?.(), { ms: 100 }, { monotonicMs: () => now })
  expect(await read()).toBe('value')
  now = 100
  await expect(read()).rejects.toThrow('away')
})
